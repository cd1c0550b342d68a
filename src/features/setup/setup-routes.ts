// The setup over HTTP, with the rights of an owner: the state of the model and of each channel, and the
// steps of `nanobot channels login`, whose questions are answered one after the other.

import { z } from 'zod';
import { channelStep } from '../../channels/channel-steps.ts';
import { CHANNELS } from '../../channels/index.ts';
import { noteCommand } from '../../channels/local-channel.ts';
import { mayHaveSeveral } from '../../kernel/config/config.ts';
import { accountName } from '../../kernel/config/settings-fields.ts';
import type { ChannelReport } from '../../kernel/gateway.ts';
import {
  endpoint,
  Refusal,
  type RouteHandlers,
  streamed,
  watched,
} from '../../kernel/http-routes.ts';
import { accountOf } from '../../kernel/message/ids.ts';
import type { AuditLog } from '../../kernel/observe/telemetry.ts';
import { defined } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Redactor } from '../../lib/text/redact.ts';
import { t } from '../../lib/texts.ts';
import type { Asker, SetupHost, Step } from './asker.ts';
import { type ChannelControl, linkRoutes } from './link-routes.ts';
import { type OpenQuestions, pageStep } from './page-asker.ts';
import { type SetupState, setupEvent, setupState } from './rules/views.ts';

const MAX_ANSWER_CHARS = 10_000;

type SetupRoutesDeps = SetupHost & {
  readonly channels: ChannelControl;
  model(): SetupState['model'];
  /** What is set up beside model and channels. */
  extras(): Pick<SetupState, 'voice' | 'search'>;
  /** To a hosted tool server. */
  logIn(asker: Asker, name: string): Promise<void>;
  readonly audit: AuditLog;
  readonly log: Logger;
  readonly redact: Redactor;
};

const oneChannel = z.object({ name: z.enum(CHANNELS.map(({ name }) => name)) });
const oneServer = z.object({ name: z.string().min(1).max(100) });
const oneQuestion = z.object({ question: z.string().min(1).max(100) });

export function setupRoutes(deps: SetupRoutesDeps) {
  const { channels, model, extras, logIn, audit, log, redact, ...host } = deps;
  const open: OpenQuestions = new Map();

  const state = async () => ({
    model: model(),
    channels: channels.channels().map(shownChannel),
    ...extras(),
  });
  const note = (...words: readonly string[]) => noteCommand(audit, ...words);
  const following = (
    begin: (asker: Asker) => Promise<readonly [title: string, step: Step]>,
    anew: boolean,
    signal: AbortSignal,
  ) => pageStep({ ...host, open, log, redact }, begin, anew, signal);
  /** A step of its own, without credentials to ask for again. */
  const stepRoute = (
    summary: string,
    command: readonly string[],
    begin: (asker: Asker) => Promise<readonly [title: string, step: Step]>,
  ) =>
    streamed(
      { summary, body: z.strictObject({}), answer: setupEvent },
      (_params, _body, signal) => {
        note(...command);
        return following(begin, false, signal);
      },
    );

  return {
    'GET /api/v1/setup': endpoint(
      { summary: t`The model in use and the state of each channel`, answer: setupState },
      state,
    ),
    'GET /api/v1/setup/events': watched(
      {
        summary: t`The model in use and the state of each channel, now and after each change`,
        answer: setupState,
      },
      host.clock,
      state,
    ),
    'POST /api/v1/setup/channels/:name': streamed(
      {
        summary: t`Set a channel up: its questions and progress, until it is connected`,
        params: oneChannel,
        body: z.strictObject({
          account: accountName.exactOptional().describe('A further mailbox, by its short name.'),
          anew: z.boolean().default(false).describe('Ask for new credentials.'),
        }),
        answer: setupEvent,
      },
      ({ name }, { account, anew }, signal) => {
        if (account !== undefined && !mayHaveSeveral(name)) {
          throw new Refusal(400, 'one_account', t`${name} has only one account.`);
        }
        note('channels', 'login', name, ...(account === undefined ? [] : [account]));
        return following(
          (asker) => channelStep(host, asker, name, defined({ account })),
          anew,
          signal,
        );
      },
    ),
    ...linkRoutes(channels, log),
    'POST /api/v1/setup/voice': stepRoute(
      t`Set up who transcribes voice messages, or who speaks answers; proved before it is saved`,
      ['setup', 'voice'],
      async (asker) => {
        const { setUpVoice } = await import('../voice/setup.ts');
        return [t`Voice`, () => setUpVoice(host, asker)];
      },
    ),
    'POST /api/v1/setup/search': stepRoute(
      t`Set up the web search; proved by a search before it is saved`,
      ['setup', 'search'],
      async (asker) => {
        const { setUpWebSearch } = await import('../../tools/search/setup.ts');
        return [t`Web search`, () => setUpWebSearch(host, asker)];
      },
    ),
    'POST /api/v1/setup/tool-servers': stepRoute(
      t`Add a tool server; connected, and its tools listed, before it is saved`,
      ['mcp', 'add'],
      async (asker) => {
        const { addToolServer } = await import('../mcp/setup.ts');
        let name: string | undefined;
        const step = async () => {
          const added = await (name ?? addToolServer(host, asker, {}));
          name = typeof added === 'string' ? added : added.name;
          if (typeof added === 'string' || added.needsLogin) await logIn(asker, name);
          return name;
        };
        return [t`Tool server`, step];
      },
    ),
    'POST /api/v1/setup/tool-servers/:name/login': streamed(
      {
        summary: t`Log in to a hosted tool server: the address to open, until the access is allowed`,
        ...{ params: oneServer, body: z.strictObject({}), answer: setupEvent },
      },
      ({ name }, _body, signal) => {
        note('mcp', 'login', name);
        const step = async (asker: Asker) => {
          await logIn(asker, name);
          return name;
        };
        return following(async (asker) => [name, () => step(asker)], false, signal);
      },
    ),
    'POST /api/v1/setup/answers/:question': endpoint(
      {
        summary: t`Answer a question of the setup`,
        params: oneQuestion,
        body: z.strictObject({ answer: z.string().trim().max(MAX_ANSWER_CHARS) }),
        answer: z.object({}),
      },
      ({ question }, { answer }) => {
        const asked = open.get(question);
        if (asked === undefined) {
          throw new Refusal(404, 'not_found', t`This question is no longer open.`);
        }
        const problem = asked.problem(answer);
        if (problem !== undefined) throw new Refusal(422, 'invalid_answer', problem);
        open.delete(question);
        asked.resolve(answer);
        return {};
      },
    ),
  } satisfies RouteHandlers;
}

function shownChannel(channel: ChannelReport): SetupState['channels'][number] {
  const { name, label, status, waiting, canLogIn, enabled } = channel;
  const canSetUp = CHANNELS.some((one) => one.name === accountOf(name).channel);
  const shown = { name, label, state: status.kind, canLogIn, canSetUp, ...defined({ waiting }) };
  switch (status.kind) {
    case 'running':
      return { ...shown, ...defined({ account: status.account }) };
    case 'degraded':
      return { ...shown, reason: status.reason };
    case 'stopped':
      return { ...shown, reason: status.reason, remedy: status.remedy };
    case 'off':
      // What to do is the button, unless it is switched on and kept off.
      return enabled || !canSetUp ? { ...shown, remedy: status.remedy } : shown;
    case 'starting':
    case 'elsewhere':
      return shown;
  }
}
