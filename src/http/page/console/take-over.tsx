// Taking a conversation over, and what the owner writes there in the agent's place.

import { useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import { Button, Problem } from '../controls.tsx';
import { useAct, type ViewProps } from './parts.tsx';

const DRAFT = 'nanobot-answer:';

type AtPath = ViewProps & { readonly path: string };

export function TakeOver({ path, parts }: AtPath) {
  const { isBusy, problem, act } = useAct();
  const take = () => act(() => parts.api.postJson(`${path}/take-over`, {}));
  return (
    <>
      <Problem text={problem.value} />
      <Button
        text={t`Take over`}
        disabled={isBusy.value}
        title={t`The agent stops answering here, and you write in its place`}
        onClick={take}
      />
    </>
  );
}

/** What is written here survives a reload; a repeated try sends it once. */
export function OwnAnswer({ path, parts }: AtPath) {
  const field = useRef<HTMLTextAreaElement>(null);
  const id = useRef(crypto.randomUUID());
  const { isBusy, said, problem, act } = useAct();
  const draft = `${DRAFT}${path}`;
  // Before the next key: what is typed at once is not replaced by the draft.
  useLayoutEffect(() => {
    if (field.current === null) return;
    field.current.value = sessionStorage.getItem(draft) ?? '';
    field.current.focus();
  }, [draft]);

  const send = (event: Event) => {
    event.preventDefault();
    const text = field.current?.value.trim() ?? '';
    if (text === '' || isBusy.value) return;
    void act(async () => {
      await parts.api.postJson(`${path}/answers`, { id: id.current, text });
      id.current = crypto.randomUUID();
      sessionStorage.removeItem(draft);
      if (field.current !== null) field.current.value = '';
    }, t`Queued for sending.`);
  };

  return (
    <form class="card own-answer" onSubmit={send}>
      <h2>
        {t`You answer here`}
        <span class="soft">{t`The agent only records what is written, until you hand back.`}</span>
      </h2>
      <textarea
        ref={field}
        rows={2}
        dir="auto"
        maxLength={20_000}
        aria-label={t`Your answer`}
        placeholder={t`Write to the person`}
        onInput={({ currentTarget }) => sessionStorage.setItem(draft, currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send(event);
        }}
      />
      <Problem text={problem.value} />
      <span class="actions">
        <Button text={t`Send`} look="primary" type="submit" disabled={isBusy.value} />
        <Button
          text={t`Hand back to the agent`}
          disabled={isBusy.value}
          onClick={() => act(() => parts.api.postJson(`${path}/hand-back`, {}))}
        />
        <span class="soft" role="status">
          {said.value}
        </span>
      </span>
    </form>
  );
}
