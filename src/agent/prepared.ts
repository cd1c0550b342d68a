// Prepares a turn while the person still writes: loads the conversation and the material of the
// prompt. Valid until the session changes; then it is loaded again.

import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { WorkingNote } from '../features/memory/rules/memory-notes.ts';
import type { StandingNote } from '../features/plans/rules/plan.ts';
import { skillLine, skillsNamedIn, withOtherFiles } from '../features/skills/rules/skill.ts';
import type { Skill, Skills } from '../features/skills/skills.ts';
import type { SessionKey } from '../kernel/message/ids.ts';
import type { ChatRef, LiveUpdate } from '../kernel/message/message.ts';
import type { TranscriptEntry } from '../kernel/message/transcript.ts';
import { OWNER_FILES, type TurnPerson } from '../kernel/message/untrusted.ts';
import type { SessionStore } from '../kernel/sessions/store.ts';
import { RecentMap, sharedWhileRunning } from '../lib/async.ts';
import { fileStamp } from '../lib/files/files.ts';
import type { Redactor } from '../lib/text/redact.ts';
import type { PreparedContext } from './agent.ts';
import {
  MEMORY_FILE,
  type PromptFile,
  type PromptParts,
  type PromptSection,
  WORKSPACE_FILES,
} from './rules/prompt.ts';
import { takenUp } from './rules/turn-closing.ts';

export type Prepared = PreparedContext & {
  readonly person: TurnPerson;
  /** The conversation as loaded. */
  readonly window: readonly TranscriptEntry[];
  /** Without the messages that no turn has taken up. */
  readonly history: readonly TranscriptEntry[];
  readonly material: PromptMaterial;
  /** The note of the agent about a task in progress. */
  readonly standing: StandingNote | undefined;
  /** The working memory of the session, where its history does not contain the same. */
  readonly working: WorkingNote | undefined;
};

/** Both are undefined where there is no note. */
export type NoteSources = {
  /** The note of the agent about a task in progress. */
  standing(session: SessionKey): Promise<StandingNote | undefined>;
  /** What the session came to before the part that its history shows. */
  working(
    session: SessionKey,
    person: TurnPerson,
    history: readonly TranscriptEntry[],
  ): Promise<WorkingNote | undefined>;
};

/** Prepared contexts waiting for their turn; an evicted one is loaded again. */
const MAX_WAITING = 256;

export function createPreparedContexts(
  sessions: SessionStore,
  sources: PromptSources,
  notes: NoteSources,
) {
  const fresh = new RecentMap<SessionKey, Prepared>(MAX_WAITING);

  async function prepare(session: SessionKey, chat: ChatRef, person: TurnPerson) {
    const [window, material, standing] = await Promise.all([
      sessions.load(session, 'forNextTurn'),
      sources.read(chat.channel, person.notes),
      notes.standing(session),
    ]);
    const history = takenUp(window);
    const working = await notes.working(session, person, history);
    const prepared: Prepared = { session, person, window, history, material, standing, working };
    fresh.set(session, prepared);
    return prepared;
  }

  return {
    prepare,
    /** The context as prepared, or a new one where the session changed since. */
    async current(context: PreparedContext, chat: ChatRef, person: TurnPerson): Promise<Prepared> {
      const found = fresh.get(context.session);
      const isFresh = found === context && found.person.notes === person.notes;
      return isFresh ? found : prepare(context.session, chat, person);
    },
    /** Called when the session's history changes. */
    outdated: (session: SessionKey) => void fresh.delete(session),
  };
}

// Reads the sources of the system prompt. A file is read again only when its stamp changed, so a
// turn costs a few stat calls however large the workspace is. Links are not followed: the agent
// writes to this folder, and a link could expose files outside of it. Secrets are redacted: people
// write notes into the workspace, and some write their keys there.

/** The sources that do not depend on the turn. */
type PromptMaterial = Pick<
  PromptParts,
  'files' | 'channelContext' | 'memory' | 'memoryFile' | 'skills' | 'activeSkills' | 'profiles'
> & {
  /** In a replay: the recorded prompt, which replaces all sources. */
  readonly whole?: PromptSection['parts'];
};

export interface PromptSources {
  /** For a turn of the person with these notes. */
  read(channel: string, notes: string): Promise<PromptMaterial>;
  /** The skills that a message names; none in a replay, whose messages contain them. */
  requestedSkills?(message: string): Promise<readonly RequestedSkill[]>;
}

export type RequestedSkill = { readonly name: string; readonly text: string };

type PromptSourcesDeps = {
  /** Absolute path; read at each turn. */
  workspace(): string;
  /** Long-term memory for the prompt; empty where there is none. */
  memoryText(notes: string): Promise<string>;
  readonly skills: Skills;
  /** One line per profile of subagents. */
  profiles?(): string | Promise<string>;
  readonly redact: Redactor;
};

/** Far above every prompt budget; a larger file is read up to here. */
const MAX_FILE_BYTES = 262_144;
/** The fixed files, and one context file per channel. */
const MAX_CACHED_FILES = 64;

type Cached = { readonly stamp: string; readonly text: string };

export function createPromptSources(deps: PromptSourcesDeps): PromptSources {
  const { redact } = deps;
  const cache = new RecentMap<string, Cached>(MAX_CACHED_FILES);

  async function readFile(name: string): Promise<PromptFile | undefined> {
    const path = join(deps.workspace(), name);
    const stamp = fileStamp(path);
    if (stamp === undefined) return undefined;
    const cached = cache.get(path);
    const text = cached?.stamp === stamp ? cached.text : await readRegular(path);
    if (text === undefined) return undefined;
    cache.set(path, { stamp, text });
    return { name, text: redact(text) };
  }

  const listSkills = sharedWhileRunning(() => deps.skills.list());

  /** Leaves out unusable skills. */
  async function readSkills() {
    const found = await listSkills('');
    const usable = found.filter(({ state }) => state.kind === 'ready' || state.kind === 'lacking');
    const isActive = ({ isAlways, state }: Skill) => isAlways && state.kind === 'ready';
    const active = await Promise.all(
      usable.filter(isActive).map(async ({ name }) => {
        return `## ${name}\n\n${(await deps.skills.read(name)).text}`;
      }),
    );
    const lines = usable
      .filter((skill) => !isActive(skill))
      .map((skill) => skillLine(skill, skill.state.kind === 'lacking' ? skill.state.missing : []));
    return { skills: redact(lines.join('\n')), activeSkills: redact(active.join('\n\n')) };
  }

  /** What is the same for all chats of a channel. */
  const ofChannel = sharedWhileRunning(async (channel) => {
    const [found, ownContext, skills, profiles = ''] = await Promise.all([
      Promise.all(WORKSPACE_FILES.map(readFile)),
      readFile(`CONTEXT-${channel}.md`),
      readSkills(),
      deps.profiles?.(),
    ]);
    const files = found.filter((file) => file !== undefined);
    const channelContext = ownContext ?? (await readFile('CONTEXT.md'));
    return {
      files,
      profiles: redact(profiles),
      ...skills,
      ...(channelContext && { channelContext }),
    };
  });

  return {
    async read(channel, notes) {
      const [shared, memory] = await Promise.all([ofChannel(channel), deps.memoryText(notes)]);
      const files = shared.files.filter(({ name }) => notes === '' || !OWNER_FILES.includes(name));
      return { ...shared, files, memory: redact(memory), memoryFile: notes + MEMORY_FILE };
    },
    async requestedSkills(message) {
      if (!message.includes('skill') && !message.includes('-')) return [];
      const ready = (await listSkills('')).filter(({ state }) => state.kind === 'ready');
      const isActive = new Set(ready.flatMap(({ name, isAlways }) => (isAlways ? [name] : [])));
      const names = ready.map(({ name }) => name).filter((name) => !isActive.has(name));
      return Promise.all(
        skillsNamedIn(message, names).map(async (name) => {
          const { text, others } = await deps.skills.read(name);
          return { name, text: redact(withOtherFiles(text, others)) };
        }),
      );
    },
  };
}

async function readRegular(path: string): Promise<string | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    if (!(await file.stat()).isFile()) return undefined;
    const buffer = Buffer.alloc(MAX_FILE_BYTES);
    const { bytesRead } = await file.read(buffer, 0, MAX_FILE_BYTES, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}

// Updates of a running turn with secrets redacted. A secret that is still incomplete is not
// recognised.

export function redactedPicture(redact: Redactor): (update: LiveUpdate) => LiveUpdate {
  return (update) => ({
    ...update,
    markdown: redact(update.markdown),
    tools: update.tools.map((tool) => ({
      ...tool,
      detail: redact(tool.detail),
      ...(tool.preview === undefined ? {} : { preview: redact(tool.preview) }),
    })),
    ...(update.notice === undefined ? {} : { notice: redact(update.notice) }),
  });
}
