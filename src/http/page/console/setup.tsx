// Setup: the model that answers, each channel with its state and what to do next, voice, web search and tool
// servers.

import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { SetupState } from '../../../features/setup/rules/views.ts';
import { Button, Form, Problem } from '../controls.tsx';
import { FIRST_ASKED } from './first-asked.ts';
import { Page, type PageParts, Shown, useAct, useLive, type ViewProps } from './parts.tsx';
import { LinkAccount } from './setup-link.tsx';
import { ModelCard } from './setup-model.tsx';
import { capital, SetupTabs, Words } from './setup-parts.tsx';
import { SetupStep } from './setup-step.tsx';
import { SearchCard, ToolServers, VoiceCard } from './setup-tools.tsx';

const CHANNELS = '/api/v1/setup/channels';
const MAILBOX = 'email';

type Channel = SetupState['channels'][number];

export function Setup({ parts }: ViewProps) {
  const live = useLive<SetupState>(parts, FIRST_ASKED.setup.live);
  return (
    <Page title={t`Setup`}>
      <SetupTabs shown="#/setup" />
      <Shown
        live={live}
        show={({ model, channels, voice, search }) => (
          <>
            <ModelCard parts={parts} model={model} />
            <section class="section" aria-label={t`Channels`}>
              <h2>{t`Channels`}</h2>
              <p class="soft">
                {t`Where people write to the agent. This page and the terminal always work.`}
              </p>
              <ul class="cards">
                {channels.map((channel) => (
                  <ChannelCard
                    key={channel.name}
                    parts={parts}
                    channel={channel}
                    isNext={channels.every(({ state }) => state === 'off')}
                  />
                ))}
              </ul>
            </section>
            <VoiceCard parts={parts} voice={voice} />
            <SearchCard parts={parts} search={search} />
            <ToolServers parts={parts} />
          </>
        )}
      />
    </Page>
  );
}

/** What is done in a card; one at a time. */
type Task = 'link' | 'set up' | 'anew' | 'another' | undefined;

type CardProps = {
  readonly parts: PageParts;
  readonly channel: Channel;
  /** No channel is connected: this is what to do next. */
  readonly isNext: boolean;
};

function ChannelCard({ parts, channel, isNext }: CardProps) {
  const { name, label, state } = channel;
  const task = useSignal<Task>(undefined);
  const { problem, act } = useAct();
  const card = useRef<HTMLLIElement>(null);
  const [kind = name, account] = name.split('@');

  const begin = (next: Task) => () => {
    problem.value = '';
    task.value = next;
  };
  const over = () => {
    task.value = undefined;
    setTimeout(() => card.current?.querySelector<HTMLButtonElement>('fieldset>button')?.focus());
  };
  const restart = () =>
    act(() => parts.api.postJson(`${CHANNELS}/${encodeURIComponent(name)}/restart`, {}));

  const body = { ...(account === undefined ? {} : { account }), anew: task.value === 'anew' };
  return (
    <li ref={card} class="card channel-card" data-channel={name} data-state={state}>
      <h2>
        <span class="channel-dot" aria-hidden="true" />
        <bdi>{label}</bdi>
        {account !== undefined && <span class="badge">{account}</span>}
      </h2>
      <State channel={channel} />
      <Problem text={problem.value} />
      {task.value === undefined && (
        <Actions channel={channel} isNext={isNext} begin={begin} restart={restart} />
      )}
      {task.value === 'link' && (
        <LinkAccount
          parts={parts}
          label={label}
          path={`${CHANNELS}/${encodeURIComponent(name)}/login`}
          onOver={over}
        />
      )}
      {(task.value === 'set up' || task.value === 'anew') && (
        <SetupStep
          parts={parts}
          title={t`Set up ${label}`}
          path={`${CHANNELS}/${encodeURIComponent(kind)}`}
          body={body}
          onOver={over}
        />
      )}
      {task.value === 'another' && <AnotherMailbox parts={parts} onOver={over} />}
    </li>
  );
}

function State({ channel }: Pick<CardProps, 'channel'>) {
  const { state, account, reason = '', remedy, waiting } = channel;
  const texts: Readonly<Record<Channel['state'], string>> = {
    off: t`Off`,
    starting: t`Starting…`,
    running: account === undefined ? t`On` : t`On as ${account}`,
    elsewhere: t`Run by another process`,
    degraded: t`Trying again: ${reason}`,
    stopped: capital(reason),
  };
  const advice = remedy ?? waiting;
  return (
    <div class="channel-text">
      <span class="channel-state" dir="auto">
        <Words text={texts[state]} />
      </span>
      {advice !== undefined && (
        <span class="channel-remedy">
          <Words text={advice} />
        </span>
      )}
    </div>
  );
}

type ActionsProps = Pick<CardProps, 'channel' | 'isNext'> & {
  readonly begin: (task: Task) => () => void;
  readonly restart: () => Promise<unknown>;
};

function Actions({ channel, isNext, begin, restart }: ActionsProps) {
  const { name, label, state, canLogIn, canSetUp } = channel;
  const mayLink = canLogIn && state === 'stopped';
  const isDown = !mayLink && (state === 'stopped' || state === 'degraded');
  return (
    <fieldset class="actions" aria-label={t`About ${label}`}>
      {mayLink && <Button text={t`Link`} look="primary" onClick={begin('link')} />}
      {isDown && <Button text={t`Restart`} onClick={restart} />}
      {canSetUp && state === 'off' && (
        <Button text={t`Set up`} look={isNext ? 'primary' : undefined} onClick={begin('set up')} />
      )}
      {canSetUp && state !== 'off' && (
        <>
          <Button text={t`Check and pair`} onClick={begin('set up')} />
          <Button text={t`New login`} onClick={begin('anew')} />
        </>
      )}
      {name === MAILBOX && state !== 'off' && (
        <Button text={t`Another mailbox`} onClick={begin('another')} />
      )}
    </fieldset>
  );
}

function AnotherMailbox({ parts, onOver }: Pick<CardProps, 'parts'> & { onOver: () => void }) {
  const account = useSignal('');
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.focus(), []);
  if (account.value !== '') {
    return (
      <SetupStep
        parts={parts}
        title={t`Another mailbox`}
        path={`${CHANNELS}/${MAILBOX}`}
        body={{ account: account.value }}
        onOver={onOver}
      />
    );
  }
  return (
    <Form
      class="answer"
      submit={() => {
        account.value = field.current?.value ?? '';
      }}
    >
      <label>
        {t`A short name for it, e.g. work`}
        <input ref={field} required maxLength={32} autocomplete="off" autocapitalize="none" />
      </label>
      <div class="actions">
        <Button text={t`Continue`} look="primary" type="submit" />
        <Button text={t`Close`} onClick={onOver} />
      </div>
    </Form>
  );
}
