// What the agent can do beyond answering: hear and speak, search the web, and use tool servers (MCP) with
// their tools, switch and trust.

import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { ShownServers } from '../../../features/mcp/rules/views.ts';
import type { SetupState } from '../../../features/setup/rules/views.ts';
import { Button, Options, Problem, set } from '../controls.tsx';
import { FIRST_ASKED } from './first-asked.ts';
import { AskedTwice, type PageParts, Shown, useAct, useLive } from './parts.tsx';
import { SetupStep } from './setup-step.tsx';

type Server = ShownServers['servers'][number];
type PartsProps = { readonly parts: PageParts };

/** A card with a step behind its button. */
function StepCard(
  props: PartsProps & {
    readonly title: string;
    readonly button: string;
    readonly path: string;
    readonly children: ComponentChildren;
  },
) {
  const isOpen = useSignal(false);
  const { title, button, path } = props;
  const opener = useRef<HTMLButtonElement>(null);
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      {props.children}
      {isOpen.value ? (
        <SetupStep
          parts={props.parts}
          title={t`Set up ${title}`}
          path={path}
          body={{}}
          onOver={() => {
            isOpen.value = false;
            setTimeout(() => opener.current?.focus());
          }}
        />
      ) : (
        <div class="actions">
          <Button text={button} ref={opener} onClick={set(isOpen, true)} />
        </div>
      )}
    </section>
  );
}

export function VoiceCard({
  parts,
  voice: { listening, speaking },
}: PartsProps & Pick<SetupState, 'voice'>) {
  return (
    <StepCard parts={parts} title={t`Voice`} button={t`Set up voice`} path="/api/v1/setup/voice">
      <p>
        {listening === undefined
          ? t`Voice messages are not transcribed.`
          : t`Voice messages are transcribed by ${listening}.`}{' '}
        {speaking === undefined ? t`Answers are text.` : t`Answers are spoken by ${speaking}.`}
      </p>
    </StepCard>
  );
}

export function SearchCard({
  parts,
  search: { engines },
}: PartsProps & Pick<SetupState, 'search'>) {
  const [first, ...others] = engines;
  const list = others.join(', ');
  return (
    <StepCard
      parts={parts}
      title={t`Web search`}
      button={t`Set up the web search`}
      path="/api/v1/setup/search"
    >
      <p>
        {first === undefined ? t`The agent cannot search the web.` : t`Searches go to ${first}.`}{' '}
        {list !== '' && t`If it fails: ${list}.`}
      </p>
    </StepCard>
  );
}

export function ToolServers({ parts }: PartsProps) {
  const live = useLive<ShownServers>(parts, FIRST_ASKED.setup.toolServers);
  return (
    <section class="section" aria-label={t`Tool servers`}>
      <h2>{t`Tool servers`}</h2>
      <p class="soft">
        {t`Programs and services that give the agent further tools (MCP), e.g. for your notes or calendar.`}
      </p>
      <Shown
        live={live}
        show={({ servers }) => (
          <ul class="cards">
            {servers.map((server) => (
              <ServerCard key={server.name} parts={parts} server={server} />
            ))}
          </ul>
        )}
      />
      <StepCard
        parts={parts}
        title={t`Another tool server`}
        button={t`Add a tool server`}
        path="/api/v1/setup/tool-servers"
      >
        <p class="soft">{t`It is connected, and its tools are listed, before it is saved.`}</p>
      </StepCard>
    </section>
  );
}

function ServerCard({ parts, server }: PartsProps & { readonly server: Server }) {
  const { name, origin, enabled, state, text, tools, mayLogIn } = server;
  const { isBusy, problem, act } = useAct();
  const isLoggingIn = useSignal(false);
  const path = `/api/v1/tool-servers/${encodeURIComponent(name)}`;
  const post = (end: string, body: object) => act(() => parts.api.postJson(`${path}${end}`, body));

  const tone = { connected: 'running', failed: 'stopped', login: 'stopped', lost: 'degraded' };
  const shownState = state === 'off' || state === 'starting' ? state : tone[state];
  return (
    <li class="card channel-card" data-tool-server={name} data-state={shownState}>
      <h2>
        <span class="channel-dot" aria-hidden="true" />
        <bdi>{name}</bdi>
      </h2>
      <div class="channel-text">
        <span class="channel-state" dir="auto">
          {text}
        </span>
        <code class="server-origin">{origin}</code>
      </div>
      <Problem text={problem.value} />
      {tools.length > 0 && <Tools tools={tools} />}
      <Trust server={server} isBusy={isBusy.value} onTrust={(trust) => post('', { trust })} />
      {isLoggingIn.value && (
        <SetupStep
          parts={parts}
          title={t`Log in to ${name}`}
          path={`/api/v1/setup/tool-servers/${encodeURIComponent(name)}/login`}
          body={{}}
          onOver={set(isLoggingIn, false)}
        />
      )}
      {!isLoggingIn.value && (
        <fieldset class="actions" aria-label={t`About ${name}`} disabled={isBusy.value}>
          {state === 'login' && (
            <Button text={t`Log in`} look="primary" onClick={set(isLoggingIn, true)} />
          )}
          {mayLogIn && state === 'connected' && (
            <Button text={t`Log out`} onClick={() => post('/logout', {})} />
          )}
          <Button
            text={enabled ? t`Switch off` : t`Switch on`}
            onClick={() => post('', { enabled: !enabled })}
          />
          <AskedTwice
            text={t`Remove…`}
            sure={t`Remove ${name} for good`}
            onSure={() => post('/remove', {})}
          />
        </fieldset>
      )}
    </li>
  );
}

function Tools({ tools }: Pick<Server, 'tools'>) {
  return (
    <details class="server-tools">
      <summary>{t`Tools (${tools.length})`}</summary>
      <dl>
        {tools.map(({ name, description }) => (
          <div key={name}>
            <dt>
              <code>{name}</code>
            </dt>
            <dd dir="auto">{description}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

function Trust(props: {
  readonly server: Server;
  readonly isBusy: boolean;
  readonly onTrust: (trust: Server['trust']) => void;
}) {
  const { server, isBusy, onTrust } = props;
  const texts = {
    ask_once: t`once for each tool`,
    always_ask: t`each time`,
    read_only: t`never: its tools change nothing`,
  };
  const choices = Object.entries(texts) as [Server['trust'], string][];
  return (
    <label class="server-trust">
      {t`Asks you`}
      <select
        value={server.trust}
        disabled={isBusy}
        onChange={({ currentTarget }) => {
          const [chosen] = choices.find(([trust]) => trust === currentTarget.value) ?? [];
          if (chosen !== undefined) onTrust(chosen);
        }}
      >
        <Options of={choices} />
      </select>
    </label>
  );
}
