// An entry of a transcript from a line of a session file that was found to have its shape.

import type {
  AssistantEntry,
  SharedCall,
  SummaryEntry,
  TokenUsage,
  TranscriptEntry,
  UserEntry,
} from '../../message/transcript.ts';
import type { DiskEntry } from './shape.ts';

const mediaFromDisk = (media: UserEntry['media']) =>
  media === undefined || media.length === 0 ? {} : { media };

export function fromDisk(disk: DiskEntry): TranscriptEntry {
  const at = disk.timestamp;
  switch (disk.role) {
    case 'user':
      return fromUser(disk);
    case 'assistant':
      return fromAssistant(disk);
    case 'tool':
      return {
        role: disk.role,
        turnId: disk.turn_id,
        callId: disk.tool_call_id,
        name: disk.name,
        status: disk.status,
        text: disk.content,
        ...(disk.failure === undefined ? {} : { failure: disk.failure }),
        ...(disk.blocked === true ? { isBlocked: true } : {}),
        ...(disk.result_id === undefined ? {} : { resultId: disk.result_id }),
        ...(disk.whole === undefined ? {} : { whole: disk.whole }),
        ...mediaFromDisk(disk.media),
        ...(disk.foreign === true ? { isForeign: true } : {}),
        at,
      };
    case 'summary':
      return fromSummary(disk);
    case 'reset':
      return { role: disk.role, at };
    case 'undo':
      return { role: disk.role, undoes: disk.undoes, by: disk.by, at };
    case 'restore':
      return { role: disk.role, brings: disk.brings, by: disk.by, at };
    case 'turn_end':
      return {
        role: disk.role,
        turnId: disk.turn_id,
        outcome: disk.outcome,
        answers: disk.answers,
        throughSeq: disk.through_seq,
        ...(disk.shared === undefined ? {} : { shared: disk.shared.map(fromShared) }),
        at,
      };
  }
}

function fromSummary(disk: Extract<DiskEntry, { role: 'summary' }>): SummaryEntry {
  return {
    role: disk.role,
    text: disk.content,
    ...(disk.keeps_from === undefined ? {} : { keepsFrom: disk.keeps_from }),
    ...(disk.nodes === undefined ? {} : { nodes: disk.nodes }),
    ...(disk.omitted === undefined ? {} : { omitted: disk.omitted }),
    ...mediaFromDisk(disk.media),
    ...(disk.foreign === true ? { isForeign: true } : {}),
    at: disk.timestamp,
  };
}

function fromUser(disk: Extract<DiskEntry, { role: 'user' }>): UserEntry {
  return {
    role: disk.role,
    turnId: disk.turn_id,
    ...(disk.message_id === undefined ? {} : { messageId: disk.message_id }),
    ...(disk.seq === undefined ? {} : { seq: disk.seq }),
    text: disk.content,
    ...mediaFromDisk(disk.media),
    ...(disk.foreign === true ? { isForeign: true } : {}),
    at: disk.timestamp,
  };
}

type DiskUsage = Extract<DiskEntry, { role: 'assistant' }>['usage'];

function usageFromDisk(usage: DiskUsage): { readonly usage?: TokenUsage } {
  if (usage === undefined) return {};
  const { input_tokens, output_tokens, cached_tokens } = usage;
  return {
    usage: { inputTokens: input_tokens, outputTokens: output_tokens, cachedTokens: cached_tokens },
  };
}

const fromShared = ({ role, model, usage }: DiskShared): SharedCall => ({
  role,
  model,
  ...usageFromDisk(usage),
});

type DiskShared = NonNullable<Extract<DiskEntry, { role: 'turn_end' }>['shared']>[number];

function fromAssistant(disk: Extract<DiskEntry, { role: 'assistant' }>): AssistantEntry {
  return {
    role: disk.role,
    turnId: disk.turn_id,
    text: disk.content,
    toolCalls: disk.tool_calls,
    ...(disk.draft === true ? { isDraft: true } : {}),
    ...(disk.unsupported === undefined ? {} : { unsupported: disk.unsupported }),
    thinking: disk.thinking.map(({ text, signature }) =>
      signature === undefined ? { text } : { text, signature },
    ),
    model: disk.model,
    ...usageFromDisk(disk.usage),
    ...(disk.through_seq === undefined ? {} : { throughSeq: disk.through_seq }),
    ...(disk.asked === undefined ? {} : { asked: disk.asked }),
    at: disk.timestamp,
  };
}
