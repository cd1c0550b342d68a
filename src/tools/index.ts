// Every tool the agent may get. Which ones it does get is a setting of the toolbox.

import { createSendEmail } from '../features/letters/send-email.ts';
import { type CheckInboxDeps, createCheckInbox } from '../features/mail-bridge/check-inbox.ts';
import type { MemoryStore } from '../features/memory/memory.ts';
import { createRecall } from '../features/memory/recall.ts';
import { createRemember } from '../features/memory/remember.ts';
import {
  createBacktrack,
  createCheckpoint,
  createPlan,
  type Plans,
} from '../features/plans/tool.ts';
import { createCron, type Schedules } from '../features/schedule/cron-tool.ts';
import { createReadSkill } from '../features/skills/read-skill.ts';
import type { Skills } from '../features/skills/skills.ts';
import { createSpawn, type Helpers } from '../features/subagents/spawn.ts';
import { createWorkflow, type Workflows } from '../features/workflows/tool.ts';
import type { GuardedFiles } from '../lib/files/guarded-files.ts';
import { createAskUser } from './ask-user.ts';
import { createExec } from './exec/exec.ts';
import { createExecuteCode } from './exec/execute-code.ts';
import type { Executor } from './exec/executor.ts';
import { createExpand, type ExpandDeps } from './expand.ts';
import { createEditFile } from './files/edit-file.ts';
import { createListDir } from './files/list-dir.ts';
import type { OwnFiles } from './files/own-files.ts';
import { createReadDocument, type ReadDocumentDeps } from './files/read-document.ts';
import { createReadFile } from './files/read-file.ts';
import { createSendFile, type SendFileDeps } from './files/send-file.ts';
import { createWriteFile } from './files/write-file.ts';
import { createMessage } from './message.ts';
import { createReadEarlier } from './read-earlier.ts';
import { createReadResult, type ReadResultDeps } from './read-result.ts';
import { createSearchTools, type SearchToolsDeps } from './search/search-tools.ts';
import { createSessionSearch, type PastSessions } from './session-search.ts';
import { createTime } from './time.ts';
import type { Tool } from './tool.ts';
import { createWebFetch, type WebFetchDeps } from './web/web-fetch.ts';

export type ToolsDeps = {
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
  readonly schedules: () => Schedules;
  readonly plans: () => Plans;
  readonly helpers: () => Helpers;
  readonly workflows: () => Workflows;
};

export function createTools({
  files,
  own,
  memory,
  skills,
  sessions,
  past,
  timeZone,
  inboxes,
  executor,
  web,
  search,
  sending,
  results,
  reading,
  plans,
  schedules,
  helpers,
  workflows,
}: ToolsDeps): readonly Tool[] {
  const recall = createRecall(memory);
  const sessionSearch = createSessionSearch({ past, maxResultChars: reading.maxResultChars });
  const mailbox = createCheckInbox({ inboxes, timeZone });
  return [
    createReadFile({ files, own }),
    createReadDocument({ files, ...reading }),
    createReadResult(results),
    createWriteFile({ files, own }),
    createEditFile({ files, own }),
    createListDir({ files, own }),
    createRemember(memory),
    recall,
    sessionSearch,
    createReadEarlier({ sessions, maxResultChars: reading.maxResultChars }),
    createExpand({ sessions, maxResultChars: reading.maxResultChars }),
    createReadSkill(skills),
    createMessage(),
    createAskUser(),
    createPlan(plans),
    createCheckpoint(plans),
    createBacktrack(plans),
    createSendEmail(),
    createSendFile({ files, ...sending }),
    createExec(executor),
    createExecuteCode(executor),
    createWebFetch(web),
    mailbox,
    ...createSearchTools(search, { files }, { memory: recall, sessions: sessionSearch, mailbox }),
    createTime(timeZone),
    createCron(schedules),
    createSpawn(helpers),
    createWorkflow(workflows),
  ];
}
