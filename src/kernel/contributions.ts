// What features contribute, in registries that exist before the first feature: code that needs all
// tools, tasks or handlers reads them here on use, so that nothing is passed to what is built
// before it.

import { readOnce } from '../lib/async.ts';
import type { Tool } from '../tools/tool.ts';
import type { Command } from './commands/command-access.ts';
import type { CallGuard, ModelGuard } from './guards.ts';
import type { Route, RouteHandlers, RouteName } from './http-routes.ts';
import type { IntakeStep } from './intake/group-intake.ts';
import type { SessionKey } from './message/ids.ts';
import type { ChatRef, InboundMessage } from './message/message.ts';
import type { TranscriptEntry } from './message/transcript.ts';
import type { AuditEvent, Gauge } from './observe/telemetry.ts';
import type { PersonalData } from './personal-data.ts';
import type { QuestionHandler } from './questions/question-rows.ts';
import type { StatusSource } from './status.ts';
import type { TurnStage } from './turns/stages.ts';

/** Runs beside the turns as long as the gateway does; restarted when it fails. */
export type BackgroundTask = {
  readonly name: string;
  /** Of several processes only one runs it at a time; absent: each does. */
  readonly isOnce?: true;
  run(signal: AbortSignal): Promise<void>;
};

/** The conversations from which the one of this chat was started; the channel is internal. */
export type StartedFrom = (chat: string) => Promise<readonly SessionKey[]>;

/** Observes what is written to sessions; never delays the writer. */
export type SessionWatcher = {
  appended?(session: SessionKey, entries: readonly TranscriptEntry[]): void;
  /** Also called if earlier entries were rewritten. */
  changed?(session: SessionKey): void;
};

/** Whether the work behind a chat of an internal channel still wants an answer. */
type StillWanted = (chat: ChatRef['chat']) => Promise<boolean>;

type GaugeSource = () => Promise<readonly Gauge[]>;

export interface Contributions {
  /** Read at every turn. */
  tools(source: () => readonly Tool[]): void;
  /** One line per profile of what a turn can start, for its prompt. */
  profiles(read: () => string | Promise<string>): void;
  sessionWatcher(watcher: SessionWatcher): void;
  /** Called for every message that was accepted for a turn, after the commit. */
  arrival(hear: (message: InboundMessage) => void): void;
  /** Called in the order of the features after the configuration changed. */
  reconfigured(apply: () => void | Promise<void>): void;
  /** For the chats of an internal channel; without one, an answer is always wanted. */
  stillWanted(channel: string, isWanted: StillWanted): void;
  command(...commands: readonly Command[]): void;
  status(source: StatusSource): void;
  /** Read at every scrape of `/metrics`. */
  gauges(read: GaugeSource): void;
  /**
   * The server requires the gateway's token or a login of the page, unless the routes are open. Loaded with the first request
   * for one of them.
   */
  routes<Name extends RouteName>(
    names: readonly Name[],
    load: () => Promise<RouteHandlers<NoInfer<Name>>>,
    options?: Pick<Route, 'isOpen'>,
  ): void;
  task(task: BackgroundTask): void;
  personalData(data: PersonalData): void;
  /**
   * `audited`: how decisions on the subject are recorded in the audit file; undefined: they are
   * not.
   */
  answers(subject: string, handler: QuestionHandler, audited?: AuditEvent['kind']): void;
  startedFrom(channel: string, source: StartedFrom): void;
  /** The composition root lists the names of stages, steps and guards in order. */
  stage(stage: TurnStage): void;
  intake(step: IntakeStep): void;
  modelGuard(guard: ModelGuard): void;
  callGuard(guard: CallGuard): void;
}

type AnswerSource = {
  readonly handler: QuestionHandler;
  readonly audited?: AuditEvent['kind'];
};

export interface Contributed {
  /** By name: what a model sees does not depend on the order of the features. */
  tools(): readonly Tool[];
  commands(): readonly Command[];
  status(): readonly StatusSource[];
  gauges(): readonly GaugeSource[];
  routes(): readonly Route[];
  tasks(): readonly BackgroundTask[];
  personalData(): readonly PersonalData[];
  /** By the kind of the subject. */
  answers(): ReadonlyMap<string, AnswerSource>;
  startedFrom(channel: string): StartedFrom | undefined;
  /** In the order in which they were added. */
  stages(): readonly TurnStage[];
  intake(): readonly IntakeStep[];
  modelGuards(): readonly ModelGuard[];
  callGuards(): readonly CallGuard[];
  profiles(): readonly (() => string | Promise<string>)[];
  sessionWatchers(): readonly SessionWatcher[];
  arrivals(): readonly ((message: InboundMessage) => void)[];
  reconfigured(): readonly (() => void | Promise<void>)[];
  stillWanted(channel: string): StillWanted | undefined;
}

type Registries = { readonly add: Contributions; readonly contributed: Contributed };

export function createRegistries(): Registries {
  const tools: (() => readonly Tool[])[] = [];
  const commands: Command[] = [];
  const status: StatusSource[] = [];
  const gauges: GaugeSource[] = [];
  const routes: Route[] = [];
  const tasks: BackgroundTask[] = [];
  const personalData: PersonalData[] = [];
  const answers = new Map<string, AnswerSource>();
  const starts = new Map<string, StartedFrom>();
  const stages: TurnStage[] = [];
  const intake: IntakeStep[] = [];
  const modelGuards: ModelGuard[] = [];
  const callGuards: CallGuard[] = [];
  const profiles: (() => string | Promise<string>)[] = [];
  const watchers: SessionWatcher[] = [];
  const arrivals: ((message: InboundMessage) => void)[] = [];
  const reconfigured: (() => void | Promise<void>)[] = [];
  const wanted = new Map<string, StillWanted>();
  return {
    add: {
      profiles: (read) => void profiles.push(read),
      sessionWatcher: (watcher) => void watchers.push(watcher),
      arrival: (hear) => void arrivals.push(hear),
      reconfigured: (apply) => void reconfigured.push(apply),
      stillWanted: (channel, isWanted) => void wanted.set(channel, isWanted),
      tools: (source) => void tools.push(source),
      command: (...added) => void commands.push(...added),
      status: (source) => void status.push(source),
      gauges: (read) => void gauges.push(read),
      routes(names, load, { isOpen } = { isOpen: false }) {
        const handlers = readOnce(load);
        const added = names.map((name) => ({ name, load: async () => (await handlers())[name] }));
        routes.push(...added.map((route) => ({ ...route, isOpen })));
      },
      task: (task) => void tasks.push(task),
      personalData: (data) => void personalData.push(data),
      answers: (subject, handler, audited) =>
        void answers.set(subject, audited === undefined ? { handler } : { handler, audited }),
      startedFrom: (channel, source) => void starts.set(channel, source),
      stage: (stage) => void stages.push(stage),
      intake: (step) => void intake.push(step),
      modelGuard: (guard) => void modelGuards.push(guard),
      callGuard: (guard) => void callGuards.push(guard),
    },
    contributed: {
      tools: () =>
        tools.flatMap((source) => source()).sort((one, other) => (one.name < other.name ? -1 : 1)),
      commands: () => commands,
      status: () => status,
      gauges: () => gauges,
      profiles: () => profiles,
      routes: () => routes,
      tasks: () => tasks,
      personalData: () => personalData,
      answers: () => answers,
      startedFrom: (channel) => starts.get(channel),
      stages: () => stages,
      intake: () => intake,
      modelGuards: () => modelGuards,
      callGuards: () => callGuards,
      sessionWatchers: () => watchers,
      arrivals: () => arrivals,
      reconfigured: () => reconfigured,
      stillWanted: (channel) => wanted.get(channel),
    },
  };
}
