// The model of the setup: what answers now, and connecting another: one that was found, a provider's with its
// key, or a server's with its address. It is saved once it answered a test request.

import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type {
  ConnectedModel,
  ListedModels,
  ModelChoices,
  SetupState,
} from '../../../features/setup/rules/views.ts';
import { Button, Form, Options, Problem, Said } from '../controls.tsx';
import { type PageParts, useAct } from './parts.tsx';
import { Spinner } from './setup-parts.tsx';

const MODELS = '/api/v1/setup/models';
const LOCAL = 'local/';
const ADDRESS = 'http://127.0.0.1:8000/v1';

type Wish = { readonly model?: string; readonly apiKey?: string; readonly apiBase?: string };

type Connecting = {
  readonly connect: (wish: Wish) => Promise<void>;
  readonly isBusy: boolean;
};

export function ModelCard({
  parts,
  model,
}: {
  readonly parts: PageParts;
  readonly model: SetupState['model'];
}) {
  const choices = useSignal<ModelChoices | undefined>(undefined);
  const { said, problem, act } = useAct();
  const busy = useSignal('');
  const isOpen = useSignal(false);
  const isWanted = isOpen.value || model.isDemo || model.problem !== undefined;

  const look = () =>
    act(async () => {
      choices.value = (await parts.api.getJson(MODELS)) as ModelChoices;
    });

  useEffect(() => {
    if (isWanted) void look();
  }, [isWanted]);

  async function connect(wish: Wish) {
    busy.value = t`Sending a test request to ${wish.model ?? t`the model`}…`;
    await act(async () => {
      const answer = await parts.api.postJson(MODELS, wish, { timeoutMs: 75_000 });
      const done = answer as ConnectedModel;
      said.value = t`${done.model} answered in ${done.latencyMs} ms. It answers from the next message on.`;
      isOpen.value = false;
    });
    busy.value = '';
  }

  const connecting = { connect, isBusy: busy.value !== '' };
  return (
    <section class="card" aria-label={t`Model`}>
      <h2>
        {t`Model`}
        {model.isDemo && <span class="badge bad">{t`demo, no AI model`}</span>}
      </h2>
      <p>
        {model.isDemo
          ? t`The built-in demo answers with fixed texts. Connect a real model: it is tested before it is saved.`
          : t`Answers come from `}
        {!model.isDemo && (
          <b>
            <bdi>{model.name}</bdi>
          </b>
        )}
      </p>
      {model.problem !== undefined && <p class="view-problem">{model.problem}</p>}
      <Said text={said.value} />
      <Problem class="view-problem" text={problem.value} />
      <p class="step-line working" role="status" hidden={busy.value === ''}>
        {busy.value !== '' && <Spinner />} <span>{busy.value}</span>
      </p>
      {!isWanted && (
        <div class="actions">
          <Button
            text={t`Connect another model`}
            onClick={() => {
              said.value = '';
              problem.value = '';
              isOpen.value = true;
            }}
          />
        </div>
      )}
      {isWanted && choices.value !== undefined && (
        <>
          <Found found={choices.value.found} look={look} {...connecting} />
          <WithKey vendors={choices.value.vendors} {...connecting} />
          <OwnServer parts={parts} {...connecting} />
        </>
      )}
    </section>
  );
}

type FoundProps = Connecting & {
  readonly found: ModelChoices['found'];
  readonly look: () => Promise<unknown>;
};

function Found({ found, look, connect, isBusy }: FoundProps) {
  return (
    <div class="part">
      <h3>{t`Found on this machine`}</h3>
      {found.length === 0 && (
        <p class="soft">
          {t`No model server answers (Ollama, LM Studio, llama.cpp, vLLM), and no key is in the environment.`}
        </p>
      )}
      <ul class="found">
        {found.map(({ model, label, keyVariable }) => (
          <li key={model}>
            <span>
              <bdi>{model}</bdi>{' '}
              <span class="soft">
                {keyVariable === undefined
                  ? t`runs on this machine`
                  : t`${label}, key in ${keyVariable}`}
              </span>
            </span>
            <Button
              text={t`Use`}
              disabled={isBusy}
              aria-label={t`Use ${model}`}
              onClick={() => connect({ model })}
            />
          </li>
        ))}
      </ul>
      <div class="actions">
        <Button text={t`Look again`} disabled={isBusy} onClick={look} />
      </div>
    </div>
  );
}

function Fields(props: {
  readonly title: string;
  readonly onSubmit: (typed: FormData) => Promise<void>;
  readonly isBusy: boolean;
  readonly children: ComponentChildren;
}) {
  return (
    <Form class="part answer" aria-label={props.title} submit={props.onSubmit}>
      <h3>{props.title}</h3>
      {props.children}
      <div class="actions">
        <Button text={t`Test and save`} look="primary" type="submit" disabled={props.isBusy} />
      </div>
    </Form>
  );
}

const textIn = (typed: FormData, name: string) => String(typed.get(name) ?? '').trim();

/** Without what was left empty. */
const given = (wish: Wish): Wish =>
  Object.fromEntries(Object.entries(wish).filter(([, value]) => value !== ''));

const keyField = (isRequired: boolean, hint: string) => (
  <label>
    {t`API key`}
    <input
      name="apiKey"
      type="password"
      required={isRequired}
      autocomplete="new-password"
      placeholder={hint}
      spellcheck={false}
    />
  </label>
);

function WithKey({
  vendors,
  connect,
  isBusy,
}: Connecting & { readonly vendors: ModelChoices['vendors'] }) {
  const chosen = useSignal(vendors[0]?.vendor ?? '');
  const model = useRef<HTMLInputElement>(null);
  const vendor = vendors.find((one) => one.vendor === chosen.value);
  return (
    <Fields
      title={t`A provider, with an API key`}
      isBusy={isBusy}
      onSubmit={(typed) =>
        connect(given({ model: textIn(typed, 'model'), apiKey: textIn(typed, 'apiKey') }))
      }
    >
      <label>
        {t`Provider`}
        <select
          value={chosen.value}
          onChange={({ currentTarget }) => {
            chosen.value = currentTarget.value;
            const next = vendors.find((one) => one.vendor === currentTarget.value);
            if (model.current !== null) model.current.value = next?.defaultModel ?? '';
          }}
        >
          <Options of={vendors.map((one) => [one.vendor, one.label])} />
        </select>
      </label>
      {keyField(
        vendor?.hasKey !== true,
        vendor?.hasKey === true ? t`leave empty to keep the key that is saved` : '',
      )}
      <label>
        {t`Model`}
        <input
          ref={model}
          name="model"
          required
          defaultValue={vendor?.defaultModel ?? ''}
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
        />
      </label>
    </Fields>
  );
}

function OwnServer({ parts, connect, isBusy }: Connecting & { readonly parts: PageParts }) {
  const models = useSignal<readonly string[] | undefined>(undefined);
  const { problem, act } = useAct();
  const form = useRef<HTMLDivElement>(null);

  async function list() {
    const fields = form.current?.closest('form');
    if (fields === null || fields === undefined) return;
    const typed = new FormData(fields);
    const isDone = await act(async () => {
      const asked = given({ apiBase: textIn(typed, 'apiBase'), apiKey: textIn(typed, 'apiKey') });
      const found = (await parts.api.postJson(`${MODELS}/listed`, asked)) as ListedModels;
      models.value = found.models;
    });
    const isEmpty = isDone && models.value?.length === 0;
    if (isEmpty) problem.value = t`The server lists no models; enter the name.`;
  }

  return (
    <details>
      <summary>{t`My own server, with an OpenAI-compatible API`}</summary>
      <Fields
        title={t`My own server`}
        isBusy={isBusy}
        onSubmit={(typed) => {
          const name = textIn(typed, 'model');
          const model = name.startsWith(LOCAL) ? name : `${LOCAL}${name}`;
          const [apiBase, apiKey] = [textIn(typed, 'apiBase'), textIn(typed, 'apiKey')];
          return connect(given({ model, apiBase, apiKey }));
        }}
      >
        <label>
          {t`Address`}
          <input name="apiBase" type="url" required placeholder={ADDRESS} autocomplete="off" />
        </label>
        {keyField(false, t`leave empty if the server needs none`)}
        <label>
          {t`Model`}
          <input name="model" required list="server-models" autocomplete="off" />
        </label>
        <datalist id="server-models">
          {models.value?.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <div ref={form} class="actions">
          <Button text={t`List its models`} onClick={list} />
          {models.value !== undefined && models.value.length > 0 && (
            <span
              class="soft"
              role="status"
            >{t`Choose one in the field: ${models.value.length}`}</span>
          )}
        </div>
        <Problem text={problem.value} />
      </Fields>
    </details>
  );
}
