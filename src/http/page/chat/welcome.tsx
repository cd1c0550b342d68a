// What an empty chat shows: the model that answers, and suggestions. While only the demo answers, a model is
// connected here, also below a chat that the demo has begun.

import { useSignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { t } from '/texts.js';
import { Button, set } from '../controls.tsx';
import type { ConnectModelProps } from './connect-model.tsx';

const DEMO = 'demo/';
const TRY_DEMO = [t`what time is it`, t`list files`, 'markdown', 'connect'];
const TRY = ['/help', t`What can you do?`, t`What do you know about me?`];

type WelcomeProps = ConnectModelProps & {
  /** Undefined while it is unknown. */
  readonly model: string | undefined;
  readonly isEmpty: boolean;
  readonly onTry: (text: string) => void;
};

/** Not while a view of the console is shown: what is hidden follows nothing. */
export function Welcome({ parts, model, isEmpty, onTry, onConnected }: WelcomeProps) {
  const connected = useSignal('');
  const isDemo = model?.startsWith(DEMO) ?? false;
  const noteConnected = (name: string) => {
    connected.value = name;
    onConnected(name);
  };
  if (!(isEmpty || isDemo || connected.value !== '')) return null;
  return (
    <section class={isEmpty ? 'welcome' : 'welcome-below'}>
      {isEmpty && <img src="/logo.svg" alt="" width={56} height={56} />}
      {isEmpty && <h2>{t`What can I do for you?`}</h2>}
      {isEmpty && model !== undefined && !isDemo && connected.value === '' && (
        <p>
          {t`Answers come from `}
          <b>{model}</b>
        </p>
      )}
      <p role="status" hidden={connected.value === ''}>
        {connected.value !== '' && t`${connected.value} is connected: it answers from now on.`}
      </p>
      {isDemo && <DemoNotice isFolded={!isEmpty} parts={parts} onConnected={noteConnected} />}
      {isEmpty && (
        <div class="ideas">
          {(isDemo ? TRY_DEMO : TRY).map((text) => (
            <button key={text} type="button" onClick={() => onTry(text)}>
              {text}
            </button>
          ))}
        </div>
      )}
    </section>
  );
}

type NoticeProps = ConnectModelProps & { readonly isFolded: boolean };

function DemoNotice({ isFolded, parts, onConnected }: NoticeProps) {
  const isOpen = useSignal(!isFolded);
  const Card = useSignal<ComponentType<ConnectModelProps> | undefined>(undefined);
  const problem = useSignal(false);
  useEffect(() => {
    isOpen.value = !isFolded;
  }, [isFolded]);
  useEffect(() => {
    if (!isOpen.value) return;
    import('./connect-model.tsx').then(
      ({ ConnectModel }) => {
        Card.value = ConnectModel;
      },
      () => {
        problem.value = true;
      },
    );
  }, [isOpen.value]);
  const Shown = Card.value;
  return (
    <>
      <div class="notice">
        <strong>{t`This is the built-in demo, not an AI model.`}</strong>
        {!isOpen.value && (
          <>
            <p>
              {t`Connect a real model with a key, or a model server on this machine. It is tested first, and answers without a restart.`}
            </p>
            <Button text={t`Connect a model`} look="primary" onClick={set(isOpen, true)} />
          </>
        )}
        {problem.value && <a href="#/setup">{t`Connect a model`}</a>}
      </div>
      {isOpen.value && Shown !== undefined && <Shown parts={parts} onConnected={onConnected} />}
    </>
  );
}
