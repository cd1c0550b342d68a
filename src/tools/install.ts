// Builds the agent's toolbox: all built-in tools, those of features and tool servers, with results
// redacted and effects audited.

import { createHash, randomUUID } from 'node:crypto';
import { createSendEmail } from '../features/letters/send-email.ts';
import {
  type CheckInboxDeps,
  createCheckInbox,
  openInboxes,
} from '../features/mail-bridge/check-inbox.ts';
import { TOOL_SERVERS } from '../features/mcp/tool-servers.ts';
import { MEMORY } from '../features/memory/install.ts';
import type { MemoryStore } from '../features/memory/memory.ts';
import { createRecall } from '../features/memory/recall.ts';
import { createRemember } from '../features/memory/remember.ts';
import { PLANS } from '../features/plans/plans.ts';
import {
  createBacktrack,
  createCheckpoint,
  createPlan,
  type Plans,
} from '../features/plans/tool.ts';
import { SKILLS } from '../features/skills/catalog.ts';
import { createReadSkill, type Skills } from '../features/skills/skills.ts';
import type { ToolAccess } from '../kernel/access/rights.ts';
import { type Kernel, port } from '../kernel/feature.ts';
import { maxFileBytes } from '../kernel/media/home-media.ts';
import { BEGUN, type EffectLog } from '../kernel/observe/telemetry.ts';
import { findResult } from '../kernel/sessions/earlier.ts';
import type { GuardedFiles } from '../lib/files/guarded-files.ts';
import { headOf } from '../lib/text/cut.ts';
import type { Redactor } from '../lib/text/redact.ts';
import { createAskUser, createMessage, createTime } from './ask-user.ts';
import { createExec, createExecuteCode, EXECUTOR } from './exec/exec.ts';
import type { Executor } from './exec/executor.ts';
import {
  createEditFile,
  createListDir,
  createReadFile,
  createWriteFile,
} from './files/file-tools.ts';
import { createReadDocument, type ReadDocumentDeps } from './files/read-document.ts';
import { createSendFile, type SendFileDeps } from './files/send-file.ts';
import { createOwnFiles, OWN_FILES_SCOPE, type OwnFiles } from './files/workspace-access.ts';
import {
  createExpand,
  createReadEarlier,
  createReadResult,
  createSessionSearch,
  type ExpandDeps,
  type PastSessions,
  type ReadResultDeps,
} from './read-back.ts';
import { buildSearch, createSearchTools, type SearchToolsDeps } from './search/search.ts';
import type { BoundCall, MissingTool, Tool, Toolbox, ToolContext, ToolOutcome } from './tool.ts';
import { createToolbox, toolboxSettings } from './toolbox.ts';
import { buildWeb, createWebFetch, type WebFetchDeps } from './web/web-fetch.ts';

type ToolsDeps = {
  /** Shared with memory, so that changes of one file run one after the other. */
  readonly files: GuardedFiles;
  readonly own?: OwnFiles;
  readonly memory: MemoryStore;
  readonly skills: Skills;
  readonly sessions: ExpandDeps['sessions'];
  readonly past: PastSessions;
  /** IANA zone; empty = the machine's. */
  readonly timeZone: () => string;
  readonly inboxes: CheckInboxDeps['inboxes'];
  readonly executor: Executor;
  readonly web: WebFetchDeps;
  readonly search: SearchToolsDeps;
  readonly reading: Omit<ReadDocumentDeps, 'files'>;
  readonly results: ReadResultDeps;
  readonly sending: Omit<SendFileDeps, 'files'>;
  readonly plans: () => Plans;
};

export function createTools(deps: ToolsDeps): readonly Tool[] {
  const { files, memory, sessions, past, timeZone, inboxes, reading, plans } = deps;
  const recall = createRecall(memory);
  const sessionSearch = createSessionSearch({ past, maxResultChars: reading.maxResultChars });
  const mailbox = createCheckInbox({ inboxes, timeZone });
  return [
    createReadFile(deps),
    createReadDocument({ files, ...reading }),
    createReadResult(deps.results),
    createWriteFile(deps),
    createEditFile(deps),
    createListDir(deps),
    createRemember(memory),
    recall,
    sessionSearch,
    createReadEarlier({ sessions, maxResultChars: reading.maxResultChars }),
    createExpand({ sessions, maxResultChars: reading.maxResultChars }),
    createReadSkill(deps.skills),
    createMessage(),
    createAskUser(),
    createPlan(plans),
    createCheckpoint(plans),
    createBacktrack(plans),
    createSendEmail(),
    createSendFile({ files, ...deps.sending }),
    createExec(deps.executor),
    createExecuteCode(deps.executor),
    createWebFetch(deps.web),
    mailbox,
    ...createSearchTools(deps.search, deps, { memory: recall, sessions: sessionSearch, mailbox }),
    createTime(timeZone),
  ];
}

// The toolbox with every call that has effects entered into the audit file: what it is, of whose turn,
// before it begins, and how it ended. Arguments stand there as their hash, what they are about in short.

const EFFECTS: readonly ToolAccess[] = ['write', 'rules', 'send', 'execute', 'schedule'];
const MAX_DETAIL_CHARS = 300;

/** As the agent gets it: no secret in what comes out of a tool, and every effect in the audit file. */
export function auditedToolbox(toolbox: Toolbox, audit: EffectLog, redact: Redactor): Toolbox {
  const shown = (outcome: ToolOutcome): ToolOutcome => ({
    ...outcome,
    text: redact(outcome.text),
    ...(outcome.whole === undefined ? {} : { whole: redact(outcome.whole) }),
  });
  return {
    ...toolbox,
    bind(name, argumentsJson) {
      const bound = toolbox.bind(name, argumentsJson);
      if (bound.kind === 'refused') return { ...bound, outcome: shown(bound.outcome) };
      const run = async (context: ToolContext) => shown(await bound.run(context));
      return audited({ ...bound, run }, audit, redact);
    },
  };
}

type Ready = Extract<BoundCall, { readonly kind: 'ready' }>;

function audited(bound: Ready, audit: EffectLog, redact: Redactor): Ready {
  return {
    ...bound,
    async run(context) {
      const access = bound.accessIn({ isTainted: context.isTainted });
      if (!EFFECTS.includes(access)) return bound.run(context);
      const fields = {
        ...{ call: randomUUID(), tool: bound.name, access },
        ...{ session: context.session, turn: context.turnId, wasTainted: context.isTainted },
        about: headOf(redact(bound.detail), MAX_DETAIL_CHARS),
        argumentsSha256: createHash('sha256').update(bound.arguments).digest('hex'),
      };
      await audit.enter({ kind: 'tool_call', fields: { ...fields, status: BEGUN } });
      const outcome = await bound.run(context);
      audit.note({ kind: 'tool_call', fields: { ...fields, status: outcome.status } });
      return outcome;
    },
  };
}

/** The tools of the agent, with effects audited and secrets taken out of results. */
export type AgentTools = { readonly toolbox: Toolbox; missing(): readonly MissingTool[] };

export const TOOLS = port<AgentTools>('tools');

export function install(kernel: Kernel): void {
  const { live, clock, log, media, reader, sessions, contributed } = kernel;
  const { files, notes, past } = kernel.use(MEMORY);
  const plans = kernel.use(PLANS);
  const servers = kernel.use(TOOL_SERVERS);
  const redact = (text: string) => live.redact(text);
  const maxResultChars = () => live.defaults.maxToolResultChars;
  const tools = createTools({
    plans: () => plans,
    ...{ files, memory: notes, past, sessions },
    skills: kernel.use(SKILLS),
    executor: kernel.use(EXECUTOR),
    inboxes: () => openInboxes(live, kernel.channels.get),
    timeZone: () => live.config.sessions.timeZone,
    own: createOwnFiles(kernel.store.scope(OWN_FILES_SCOPE)),
    web: buildWeb(live, clock, kernel.readerMemory, kernel.resources),
    search: buildSearch(live, kernel.env),
    sending: { media, limit: maxFileBytes(kernel) },
    reading: { media, reader, maxResultChars },
    results: { find: (session, id) => findResult(sessions, session, id), maxResultChars },
  });
  const toolbox = createToolbox({
    tools: () => [...tools, ...contributed.tools(), ...servers.tools()],
    settings: () => toolboxSettings(live.config),
    clock,
    log,
  });
  kernel.provide(TOOLS, {
    toolbox: auditedToolbox(toolbox, kernel.measuring.audit, redact),
    missing: () => toolbox.missing(),
  });
}
