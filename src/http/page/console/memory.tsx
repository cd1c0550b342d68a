// Memory and skills: what is remembered about whom, edited as text with the difference shown before it is
// saved; skills with their state, added after a review.

import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { NoteFolders, ShownNote } from '../../../features/memory/rules/views.ts';
import type {
  ShownSkill,
  SkillList,
  SkillReview,
  SkillText,
} from '../../../features/skills/rules/views.ts';
import { Ago, namedInAddress, Page, problemText, type ViewProps } from './parts.tsx';

const MEMORY = '/api/v1/memory';
const SKILLS = '/api/v1/skills';
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

/** Reads once, and again when asked to. */
function useRead<T>({ api }: ViewProps['parts'], path: string) {
  const found = useSignal<T | undefined>(undefined);
  const problem = useSignal('');
  const read = async () => {
    try {
      found.value = (await api.getJson(path)) as T;
      problem.value = '';
    } catch (error) {
      problem.value = problemText(error);
    }
  };
  useEffect(() => {
    void read();
  }, [path]);
  return { found, problem, read };
}

function Notes({ parts }: ViewProps) {
  const { found, problem } = useRead<NoteFolders>(parts, MEMORY);
  const [owners, ...others] = found.value?.folders ?? [];
  return (
    <section class="section" aria-labelledby="notes">
      <h2 id="notes">{t`Memory`}</h2>
      <p class="problem" role="alert">
        {problem.value}
      </p>
      {found.value === undefined && problem.value === '' && <p class="loading">{t`Loading…`}</p>}
      {found.value?.isOn === false && (
        <p class="view-problem">
          {t`Nothing is noted: memory.enabled is false in the configuration.`}
        </p>
      )}
      {owners !== undefined && (
        <>
          <p class="soft">
            {t`What is remembered of you is text that you can change. To erase something from notes and conversations for good, write /forget and its words in a chat.`}
          </p>
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
    </section>
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
  const { found, problem, read } = useRead<ShownNote>(parts, address);
  const draft = useSignal<string | undefined>(undefined);
  const isReviewing = useSignal(false);
  const said = useSignal('');
  const note = found.value;
  const text = draft.value ?? note?.text ?? '';

  async function save() {
    said.value = '';
    try {
      const sent = { text, version: note?.version };
      found.value = (await parts.api.postJson(address, sent)) as ShownNote;
      problem.value = '';
      draft.value = undefined;
      said.value = t`Saved. The agent reads it with the next message.`;
    } catch (error) {
      problem.value = problemText(error);
    }
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
      <p class="said-so" role="status" hidden={said.value === ''}>
        {said.value}
      </p>
      <p class="problem" role="alert">
        {problem.value}
      </p>
      {note === undefined && problem.value === '' && <p class="loading">{t`Loading…`}</p>}
      {note !== undefined && (
        <div class="card">
          {isReviewing.value ? (
            <>
              <h2>{t`What changes`}</h2>
              <Difference before={note.text} after={text} />
              <div class="actions">
                <button type="button" class="button primary" onClick={save}>
                  {t`Save`}
                </button>
                <button
                  type="button"
                  class="button"
                  onClick={() => {
                    isReviewing.value = false;
                  }}
                >
                  {t`Back to the text`}
                </button>
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
                  <button
                    type="button"
                    class="button primary"
                    disabled={text === note.text}
                    onClick={() => {
                      isReviewing.value = true;
                    }}
                  >
                    {t`Review the change`}
                  </button>
                  <button
                    type="button"
                    class="button"
                    onClick={() => {
                      draft.value = undefined;
                      void read();
                    }}
                  >
                    {t`Read again`}
                  </button>
                </div>
              )}
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

const STATES: Readonly<Record<ShownSkill['state'], string>> = {
  ready: t`ready`,
  lacking: t`something is missing`,
  changed: t`changed since it was added`,
  broken: t`broken`,
};

function Skills({ parts }: ViewProps) {
  const { found, problem, read } = useRead<SkillList>(parts, SKILLS);
  const said = useSignal('');
  const isAdding = useSignal(false);
  const opener = useRef<HTMLButtonElement>(null);

  async function change(name: string, what: 'accept' | 'remove') {
    said.value = '';
    try {
      await parts.api.postJson(`${SKILLS}/${encodeURIComponent(name)}/${what}`, {});
      said.value =
        what === 'accept' ? t`${name} is accepted as it is now.` : t`${name} was removed.`;
      await read();
    } catch (error) {
      problem.value = problemText(error);
    }
    opener.current?.focus();
  }

  async function added(name: string) {
    said.value = t`${name} is added. The agent can use it from the next message on.`;
    isAdding.value = false;
    await read();
    opener.current?.focus();
  }

  return (
    <section class="section" aria-labelledby="skills">
      <div class="view-head">
        <h2 id="skills">{t`Skills`}</h2>
        <button
          ref={opener}
          type="button"
          class="button"
          aria-expanded={isAdding.value}
          onClick={() => {
            isAdding.value = !isAdding.value;
          }}
        >
          {t`Add a skill`}
        </button>
      </div>
      <p class="soft">{t`Instructions for kinds of tasks. The agent follows them like your own; they give it no additional rights.`}</p>
      {isAdding.value && <AddSkill parts={parts} added={added} />}
      <p class="said-so" role="status" hidden={said.value === ''}>
        {said.value}
      </p>
      <p class="problem" role="alert">
        {problem.value}
      </p>
      <ul class="cards">
        {found.value?.skills.map((skill) => (
          <SkillCard key={skill.name} skill={skill} parts={parts} change={change} />
        ))}
      </ul>
    </section>
  );
}

type SkillCardProps = ViewProps & {
  readonly skill: ShownSkill;
  readonly change: (name: string, what: 'accept' | 'remove') => Promise<void>;
};

function SkillCard({ skill, parts, change }: SkillCardProps) {
  const { name, description, origin, source, isAlways, state, problem } = skill;
  const isSure = useSignal(false);
  return (
    <li class="card" data-skill={name}>
      <h3>
        <bdi>{name}</bdi>{' '}
        <span class={state === 'ready' || state === 'lacking' ? 'badge' : 'badge bad'}>
          {STATES[state]}
        </span>
        {isAlways && <span class="badge">{t`in every prompt`}</span>}
      </h3>
      <p dir="auto">{description}</p>
      {problem !== undefined && <p class="soft">{t`Missing: ${problem}`}</p>}
      <SkillTextView name={name} parts={parts} />
      {origin === 'workspace' && (
        <>
          {source !== undefined && (
            <p class="soft">
              {t`From`} <bdi>{source}</bdi>
            </p>
          )}
          <fieldset class="actions" aria-label={t`About ${name}`}>
            {state === 'changed' && (
              <button type="button" class="button" onClick={() => change(name, 'accept')}>
                {t`Accept as it is now`}
              </button>
            )}
            {isSure.value ? (
              <>
                <button type="button" class="button" onClick={() => change(name, 'remove')}>
                  {t`Remove it for good`}
                </button>
                <button
                  type="button"
                  class="button"
                  onClick={() => {
                    isSure.value = false;
                  }}
                >
                  {t`Keep`}
                </button>
              </>
            ) : (
              <button
                type="button"
                class="button"
                onClick={() => {
                  isSure.value = true;
                }}
              >
                {t`Remove…`}
              </button>
            )}
          </fieldset>
        </>
      )}
    </li>
  );
}

function SkillTextView({ name, parts }: ViewProps & { readonly name: string }) {
  const shown = useSignal('');
  return (
    <details
      onToggle={({ currentTarget }) => {
        if (!currentTarget.open) return;
        parts.api.getJson(`${SKILLS}/${encodeURIComponent(name)}`).then(
          (found) => {
            const { text, others } = found as SkillText;
            shown.value = others.length === 0 ? text : `${text}\n\n${others.join('\n')}`;
          },
          (error) => {
            shown.value = problemText(error);
          },
        );
      }}
    >
      <summary>{t`Text`}</summary>
      <pre dir="auto">{shown.value === '' ? t`Loading…` : shown.value}</pre>
    </details>
  );
}

type AddSkillProps = ViewProps & { readonly added: (name: string) => Promise<void> };

function AddSkill({ parts, added }: AddSkillProps) {
  const review = useSignal<SkillReview | undefined>(undefined);
  const problem = useSignal('');
  const isBusy = useSignal(false);
  const where = useRef<HTMLInputElement>(null);
  useEffect(() => where.current?.focus(), []);

  async function work(task: (from: string) => Promise<void>) {
    isBusy.value = true;
    problem.value = '';
    try {
      await task(where.current?.value.trim() ?? '');
    } catch (error) {
      problem.value = problemText(error);
    }
    isBusy.value = false;
  }
  const look = (event: SubmitEvent) => {
    event.preventDefault();
    void work(async (from) => {
      review.value = (await parts.api.postJson(`${SKILLS}/review`, { where: from })) as SkillReview;
    });
  };
  const add = () =>
    work(async (from) => {
      const { version, isThere, name } = review.value ?? {};
      // What was refused is reviewed again.
      review.value = undefined;
      await parts.api.postJson(SKILLS, { where: from, version, replace: isThere });
      await added(name ?? '');
    });

  const found = review.value;
  return (
    <form class="card" aria-label={t`Add a skill`} onSubmit={look}>
      <label>
        {t`Where it is`}
        <input
          ref={where}
          required
          autocomplete="off"
          placeholder="owner/repository/folder"
          aria-describedby="where-hint"
          onInput={() => {
            review.value = undefined;
          }}
        />
      </label>
      <p class="soft" id="where-hint">
        {t`A folder or .tar.gz file on the machine of the gateway, a URL of one, or a folder on GitHub. Nothing of it is run.`}
      </p>
      <p class="problem" role="alert">
        {problem.value}
      </p>
      {found !== undefined && (
        <div class="section" role="status">
          <h3>
            <bdi>{found.name}</bdi>
          </h3>
          <p dir="auto">{found.description}</p>
          <ul>
            {found.remarks.map((remark) => (
              <li key={remark}>{remark}</li>
            ))}
            {found.files.map(({ path, bytes }) => (
              <li key={path}>
                <bdi>{path}</bdi>, {t`${bytes.toLocaleString()} bytes`}
              </li>
            ))}
          </ul>
          <pre dir="auto">{found.text}</pre>
          {found.isThere && <p>{t`It replaces the skill of this name.`}</p>}
        </div>
      )}
      <div class="actions">
        {found === undefined ? (
          <button type="submit" class="button primary" disabled={isBusy.value}>
            {t`Review it`}
          </button>
        ) : (
          <button type="button" class="button primary" disabled={isBusy.value} onClick={add}>
            {t`Add ${found.name}`}
          </button>
        )}
      </div>
    </form>
  );
}
