// A step of the setup as a conversation over HTTP: its questions and progress are events of one request,
// the answers requests of their own. It ends when the page leaves. Secrets that are typed are masked in
// all events.

import { randomBytes } from 'node:crypto';
import type { LoginStep } from '../../channels/channel.ts';
import { loginSteps } from '../../cli/login/log-in.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { createChange } from '../../lib/async.ts';
import { defined } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import { qrMatrix, qrSvg } from '../../lib/qr-code.ts';
import { createRedactor, type Redactor } from '../../lib/text/redact.ts';
import { t } from '../../lib/texts.ts';
import {
  type AccountLogin,
  type Asker,
  type Choice,
  problemOfAnswer,
  type Question,
  SetupCancelled,
  type SetupHost,
  type Step,
  setupProblem,
} from './asker.ts';
import type { SetupEvent } from './rules/views.ts';

const ID_BYTES = 16;

type Asked = Extract<SetupEvent, { readonly kind: 'question' }>;
type OpenQuestion = {
  problem(answer: string): string | undefined;
  resolve(answer: string): void;
};

/** The questions of all steps that wait for an answer. */
export type OpenQuestions = Map<string, OpenQuestion>;

type PageStepDeps = SetupHost & {
  readonly open: OpenQuestions;
  readonly log: Logger;
  readonly redact: Redactor;
};

/** The events of a step, repeated until it is done or the page leaves. */
export async function* pageStep(
  { open, log, redact, ...host }: PageStepDeps,
  begin: (asker: Asker) => Promise<readonly [title: string, step: Step]>,
  isRetry: boolean,
  signal: AbortSignal,
): AsyncGenerator<SetupEvent, void, void> {
  const said: SetupEvent[] = [];
  const change = createChange();
  const typed: string[] = [];
  const send = (event: SetupEvent) => {
    const hidden = createRedactor(typed);
    const mask = (_key: string, value: unknown) =>
      typeof value === 'string' ? redact(hidden(value)) : value;
    said.push(event.kind === 'link' ? event : JSON.parse(JSON.stringify(event, mask)));
    change.notify();
  };
  const asker = createPageAsker({ ...host, open, send, signal, typed });
  let isOver = false;
  // What cannot be stopped ends by itself after the page has left, and saves nothing.
  void repeated(asker, begin, send, isRetry)
    .catch((error: unknown) => {
      if (signal.aborted || error instanceof SetupCancelled) return;
      log.error('a step of the setup failed', { error });
      send({ kind: 'failed', problem: t`Something went wrong. See the gateway’s log.` });
    })
    .finally(() => {
      isOver = true;
      change.notify();
    });
  for (let sent = 0; !signal.aborted; ) {
    const event = said[sent];
    if (event === undefined && isOver) return;
    if (event === undefined) await change.next(signal).catch(() => undefined);
    else {
      sent += 1;
      yield event;
    }
  }
}

async function repeated(
  asker: Asker,
  begin: (asker: Asker) => Promise<readonly [title: string, step: Step]>,
  send: (event: SetupEvent) => void,
  wasThere: boolean,
): Promise<void> {
  const [title, step] = await begin(asker);
  for (let isRetry = wasThere; ; isRetry = true) {
    try {
      const done = await step(isRetry);
      return send({ kind: 'done', text: done === undefined ? title : t`Set up: ${done}` });
    } catch (error) {
      if (!(error instanceof NanobotError) || error instanceof SetupCancelled) throw error;
      send({ kind: 'failed', problem: setupProblem(error) });
    }
    await asker.choose(
      t`${title} is not set up.`,
      [{ value: 'again', label: t`Try again`, hint: t`your answers are kept` }],
      'again',
    );
  }
}

type PageAskerDeps = SetupHost & {
  readonly open: OpenQuestions;
  readonly signal: AbortSignal;
  /** The secrets. */
  readonly typed: string[];
  send(event: SetupEvent): void;
};

function createPageAsker({ open, send, signal, typed, ...host }: PageAskerDeps): Asker {
  /** The last answer to each question, offered again where its step is repeated. */
  const before = new Map<string, string>();

  async function ask(
    asked: Pick<Asked, 'form' | 'message'> & Partial<Pick<Asked, 'initial' | 'choices'>>,
    problem: (answer: string) => string | undefined,
    question: Partial<Pick<Question, 'optional' | 'signal'>> = {},
  ): Promise<string> {
    const id = randomBytes(ID_BYTES).toString('base64url');
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const cancel = () => reject(new SetupCancelled());
    const withdraw = () => {
      send({ kind: 'withdrawn', id });
      cancel();
    };
    signal.addEventListener('abort', cancel);
    question.signal?.addEventListener('abort', withdraw);
    if (signal.aborted || question.signal?.aborted === true) cancel();
    open.set(id, { problem, resolve });
    const isOptional = question.optional === true;
    send({ kind: 'question', id, initial: '', choices: [], ...asked, isOptional });
    try {
      return await promise;
    } finally {
      open.delete(id);
      signal.removeEventListener('abort', cancel);
      question.signal?.removeEventListener('abort', withdraw);
    }
  }

  async function choose<Value extends string>(
    message: string,
    choices: readonly Choice<Value>[],
    otherwise: Value,
  ): Promise<Value> {
    const isOne = (answer: string) => choices.find(({ value }) => value === answer);
    const shown = choices.map(({ hint, ...rest }) => ({ ...rest, ...defined({ hint }) }));
    const initial = before.get(message) ?? otherwise;
    const answer = await ask({ form: 'choice', message, initial, choices: shown }, (given) =>
      isOne(given) === undefined ? t`Choose one of them.` : undefined,
    );
    before.set(message, answer);
    return isOne(answer)?.value ?? otherwise;
  }

  return {
    interactive: true,
    async text(question) {
      const { message, flag, initial = '' } = question;
      const answer = await ask(
        { form: 'text', message, initial: before.get(flag) ?? initial },
        (given) => problemOfAnswer(question, given),
        question,
      );
      before.set(flag, answer);
      return answer;
    },
    async secret(question) {
      const { flag } = question;
      const kept = before.get(flag) ?? '';
      const message =
        kept === '' ? question.message : t`${question.message} (leave empty to keep the last one)`;
      const optional = question.optional === true || kept !== '';
      const given = await ask(
        { form: 'secret', message },
        (answer) => problemOfAnswer({ ...question, optional }, answer),
        { ...question, optional },
      );
      const answer = given || kept;
      typed.push(answer);
      before.set(flag, answer);
      return answer;
    },
    choose,
    async confirm(message, otherwise) {
      const choices = [
        { value: 'yes', label: t`Yes` },
        { value: 'no', label: t`No` },
      ] as const;
      return (await choose(message, choices, otherwise ? 'yes' : 'no')) === 'yes';
    },
    async during(message, work, done) {
      send({ kind: 'working', text: message });
      let text = '';
      try {
        const result = await work();
        if (signal.aborted) throw new SetupCancelled();
        text = done(result);
        return result;
      } finally {
        send({ kind: 'worked', text });
      }
    },
    say: (text) => send({ kind: 'note', text, isWarning: false }),
    warn: (text) => send({ kind: 'note', text, isWarning: true }),
    link(text, address) {
      const image = address.startsWith('https:') ? pictureOf(address) : undefined;
      send({ kind: 'link', text, address, ...defined({ image }) });
    },
    logIn: (login) => logIn({ ...host, send, signal }, login),
    untilStopped: (work) => work(signal),
    later: t`you may leave this page`,
  };
}

/** @throws NanobotError with reason and remedy */
async function logIn(
  { send, signal, ...host }: Pick<PageAskerDeps, 'send' | 'signal'> & SetupHost,
  login: AccountLogin,
): Promise<string> {
  for await (const step of loginSteps(host, login, signal)) {
    if (step.kind === 'done') return step.account;
    if (step.kind === 'failed') {
      throw new NanobotError('login_failed', `${step.reason}. ${step.remedy}`);
    }
    send({ kind: 'login', step: step.kind === 'show_qr' ? shownCode(step) : step });
  }
  throw new SetupCancelled();
}

/** The page shows the picture, the command line the text. */
export const shownCode = (step: Extract<LoginStep, { readonly kind: 'show_qr' }>) => ({
  ...step,
  image: pictureOf(step.qr),
});

function pictureOf(text: string): string {
  const svg = Buffer.from(qrSvg(qrMatrix(text))).toString('base64');
  return `data:image/svg+xml;base64,${svg}`;
}
