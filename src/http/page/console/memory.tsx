// Memory and skills: what is remembered about whom, edited as text with the difference shown before it is
// saved, and erased for good.

import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type {
  ForgetDone,
  ForgetPlaces,
  NoteFolders,
  ShownNote,
} from '../../../features/memory/rules/views.ts';
import { Button, Form, Options, Problem, Said, set } from '../controls.tsx';
import { FIRST_ASKED } from './first-asked.ts';
import { FIND, Origins } from './origins.tsx';
import { Ago, namedInAddress, Page, useAct, useRead, type ViewProps } from './parts.tsx';
import { Skills } from './skills.tsx';

const MEMORY = '/api/v1/memory';
const FORGET = '/api/v1/forget';
const LONG_TERM = 'memory/MEMORY.md';

const addressOf = (path: string) => `#/memory/${encodeURIComponent(path)}`;

export function Memory({ parts }: ViewProps) {
  const path = namedInAddress();
  return path === undefined ? (
    <Page title={t`Memory and skills`}>
      <Notes parts={parts} />
      <Skills parts={parts} />
    </Page>
  ) : (
    <Note key={path} path={path} parts={parts} />
  );
}

function Notes({ parts }: ViewProps) {
  const { found, problem, read } = useRead<NoteFolders>(parts, FIRST_ASKED.memory.notes);
  const [owners, ...others] = found.value?.folders ?? [];
  return (
    <section class="section" aria-labelledby="notes">
      <h2 id="notes">{t`Memory`}</h2>
      <Problem text={problem.value} />
      {found.value === undefined && problem.value === '' && <p class="loading">{t`Loading…`}</p>}
      {found.value?.isOn === false && (
        <p class="view-problem">
          {t`Nothing is noted: memory.enabled is false in the configuration.`}
        </p>
      )}
      {owners !== undefined && (
        <>
          <p class="soft">{t`What is remembered of you is text that you can change.`}</p>
          <NoteRows notes={owners.notes} />
          {!owners.notes.some(({ path }) => path === LONG_TERM) && (
            <p>
              <a href={addressOf(LONG_TERM)}>{t`Write the long-term memory`}</a>
            </p>
          )}
        </>
      )}
      {others.map(({ folder, name, notes }) => (
        <details key={folder}>
          <summary>
            <bdi>{name ?? folder}</bdi>
          </summary>
          <NoteRows notes={notes} />
        </details>
      ))}
      {found.value !== undefined && (
        <details>
          <summary>{t`Erase something for good`}</summary>
          <Erase folders={found.value.folders} parts={parts} done={read} />
        </details>
      )}
    </section>
  );
}

type EraseProps = ViewProps & {
  readonly folders: NoteFolders['folders'];
  readonly done: () => Promise<void>;
};

function Erase({ folders, parts, done }: EraseProps) {
  const form = useRef<HTMLFormElement>(null);
  const places = useSignal<ForgetPlaces | undefined>(undefined);
  const { isBusy, said, problem, act } = useAct();
  const id = useRef(crypto.randomUUID());

  const asked = () => {
    const given = new FormData(form.current ?? undefined);
    return { folder: String(given.get('folder')), words: String(given.get('words')) };
  };
  const find = () =>
    act(async () => {
      places.value = (await parts.api.postJson(FIND, asked())) as ForgetPlaces;
    });
  const erase = () =>
    act(async () => {
      const sent = { ...asked(), id: id.current };
      said.value = ((await parts.api.postJson(FORGET, sent)) as ForgetDone).text;
      id.current = crypto.randomUUID();
      places.value = undefined;
      form.current?.reset();
      await done();
    });

  const found = places.value;
  return (
    <Form
      class="card"
      ref={form}
      aria-label={t`Erase something for good`}
      submit={find}
      onInput={set(places, undefined)}
    >
      <p class="soft">
        {t`Searches the notes, conversations and queues of one person for entries that contain all of the words, and deletes them, as /forget does in a chat.`}
      </p>
      <label>
        {t`Of whom`}
        <select name="folder">
          <Options
            of={folders.map(({ folder, name }) => [
              folder,
              folder === '' ? t`you` : (name ?? folder),
            ])}
          />
        </select>
      </label>
      <label>
        {t`Words that occur there`}
        <input name="words" required maxLength={500} autocomplete="off" dir="auto" />
      </label>
      <Problem text={problem.value} />
      <Said text={said.value} />
      {found !== undefined && (
        <div class="section" role="status">
          <h3>
            {found.count === 0
              ? t`Nothing that is kept contains all of these words.`
              : found.count === 1
                ? t`1 entry would be deleted:`
                : t`${found.count} entries would be deleted:`}
          </h3>
          <ul>
            {found.places.map(({ where, text }) => (
              <li key={`${where} ${text}`}>
                <bdi>{text}</bdi>{' '}
                <span class="soft">
                  <bdi>{where}</bdi>
                </span>
              </li>
            ))}
          </ul>
        </div>
      )}
      <div class="actions">
        {found === undefined || found.count === 0 ? (
          <Button text={t`Find it`} look="primary" type="submit" disabled={isBusy.value} />
        ) : (
          <Button
            text={t`Delete for good`}
            look="primary"
            disabled={isBusy.value}
            onClick={erase}
          />
        )}
      </div>
    </Form>
  );
}

function NoteRows({ notes }: Pick<NoteFolders['folders'][number], 'notes'>) {
  return (
    <ul class="rows">
      {notes.map(({ path, bytes, modifiedAt }) => (
        <li key={path}>
          <a class="row" href={addressOf(path)}>
            <span class="badge">{kindOf(path)}</span>
            <span class="row-name">
              <bdi>{path}</bdi>
            </span>
            <span class="soft row-facts">
              <span>{t`${bytes.toLocaleString()} bytes`}</span>
              <Ago at={modifiedAt} />
            </span>
          </a>
        </li>
      ))}
    </ul>
  );
}

function kindOf(path: string): string {
  if (path.endsWith(LONG_TERM)) return t`long-term`;
  return path.includes('/sessions/') ? t`extract` : t`day`;
}

function Note({ path, parts }: ViewProps & { readonly path: string }) {
  const address = `${MEMORY}/${encodeURIComponent(path)}`;
  const { found, problem: unread, read } = useRead<ShownNote>(parts, address);
  const { said, problem, act } = useAct();
  const draft = useSignal<string | undefined>(undefined);
  const isReviewing = useSignal(false);
  const note = found.value;
  const text = draft.value ?? note?.text ?? '';

  async function save() {
    await act(async () => {
      const sent = { text, version: note?.version };
      found.value = (await parts.api.postJson(address, sent)) as ShownNote;
      draft.value = undefined;
    }, t`Saved. The agent reads it with the next message.`);
    isReviewing.value = false;
  }

  return (
    <Page
      title={path}
      actions={
        <a class="button" href="#/memory">
          {t`All notes`}
        </a>
      }
    >
      <Said text={said.value} />
      <Problem text={problem.value || unread.value} />
      {note === undefined && unread.value === '' && <p class="loading">{t`Loading…`}</p>}
      {note !== undefined && (
        <div class="card">
          {isReviewing.value ? (
            <>
              <h2>{t`What changes`}</h2>
              <Difference before={note.text} after={text} />
              <div class="actions">
                <Button text={t`Save`} look="primary" onClick={save} />
                <Button text={t`Back to the text`} onClick={set(isReviewing, false)} />
              </div>
            </>
          ) : (
            <>
              <textarea
                class="note"
                dir="auto"
                rows={18}
                aria-label={path}
                readOnly={note.isReadOnly}
                value={text}
                onInput={({ currentTarget }) => {
                  draft.value = currentTarget.value;
                  said.value = '';
                }}
              />
              {note.isReadOnly ? (
                <p class="soft">{t`An extract of a conversation; it cannot be edited.`}</p>
              ) : (
                <div class="actions">
                  <Button
                    text={t`Review the change`}
                    look="primary"
                    disabled={text === note.text}
                    onClick={set(isReviewing, true)}
                  />
                  <Button
                    text={t`Read again`}
                    onClick={() => {
                      draft.value = undefined;
                      void read();
                    }}
                  />
                </div>
              )}
              <Origins path={path} text={note.text} parts={parts} />
            </>
          )}
        </div>
      )}
    </Page>
  );
}

/** The lines between the first and the last that differ. */
function Difference({ before, after }: { readonly before: string; readonly after: string }) {
  const [old, now] = [before.split('\n'), after.split('\n')];
  const first = now.findIndex((line, index) => line !== old[index]);
  const start = first < 0 ? Math.min(old.length, now.length) : first;
  let end = 0;
  while (
    end < Math.min(old.length, now.length) - start &&
    old[old.length - 1 - end] === now[now.length - 1 - end]
  ) {
    end += 1;
  }
  const gone = old.slice(start, old.length - end);
  const added = now.slice(start, now.length - end);
  return (
    <div class="difference">
      {gone.length > 0 && (
        <>
          <p class="soft">{t`Removed`}</p>
          <del>
            <pre dir="auto">{gone.join('\n')}</pre>
          </del>
        </>
      )}
      {added.length > 0 && (
        <>
          <p class="soft">{t`Added`}</p>
          <ins>
            <pre dir="auto">{added.join('\n')}</pre>
          </ins>
        </>
      )}
    </div>
  );
}
