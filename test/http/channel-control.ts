// Channels that exist only as what a person may do to them: the test gives the steps of a login.

import type { LoginOptions, LoginStep } from '../../src/channels/channel.ts';
import type { ChannelControl } from '../../src/features/setup/link-routes.ts';
import type { ChannelReport } from '../../src/kernel/gateway.ts';

export type ScriptedControl = ChannelControl & {
  /** Every login that was begun, with what was asked and whether it was ended from outside. */
  readonly logins: readonly { readonly options: LoginOptions; readonly signal: AbortSignal }[];
  readonly restarts: readonly string[];
  /** The next step of every login under way; `done` and `failed` end them. */
  step(step: LoginStep): void;
  /** Every login under way throws. */
  fail(error: Error): void;
  set(view: ChannelReport): void;
};

export function scriptedControl(...views: readonly ChannelReport[]): ScriptedControl {
  const channels = new Map(views.map((view) => [view.name, view]));
  const logins: { options: LoginOptions; signal: AbortSignal }[] = [];
  const restarts: string[] = [];
  const said: (LoginStep | Error)[] = [];
  const listeners = new Set<() => void>();
  const changed = () => {
    for (const listener of [...listeners]) listener();
  };

  async function* steps(options: LoginOptions, signal: AbortSignal): AsyncGenerator<LoginStep> {
    logins.push({ options, signal });
    for (let next = said.length; !signal.aborted; ) {
      const step = said[next];
      if (step instanceof Error) throw step;
      if (step === undefined) {
        await somethingNew(signal);
        continue;
      }
      next += 1;
      yield step;
      if (step.kind === 'done' || step.kind === 'failed') return;
    }
  }

  function somethingNew(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        listeners.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      listeners.add(done);
      signal.addEventListener('abort', done);
    });
  }

  return {
    logins,
    restarts,
    channels: () => [...channels.values()],
    login: (name, options, signal) =>
      channels.get(name)?.canLogIn === true ? steps(options, signal) : undefined,
    began: async () => undefined,
    async restartChannel(name) {
      restarts.push(name);
      return channels.get(name)?.status.kind !== 'off';
    },
    step(step) {
      said.push(step);
      changed();
    },
    fail(error) {
      said.push(error);
      changed();
    },
    set(view) {
      channels.set(view.name, view);
    },
  };
}

export const off = (name: string): ChannelReport => ({
  name,
  label: name.toUpperCase(),
  enabled: false,
  status: { kind: 'off', remedy: `Turn it on with: nanobot channels login ${name}` },
  canLogIn: false,
});

export const unlinked = (name: string): ChannelReport => ({
  name,
  label: name.toUpperCase(),
  enabled: true,
  status: { kind: 'stopped', reason: 'no account is linked', remedy: 'Link one.' },
  canLogIn: true,
});
