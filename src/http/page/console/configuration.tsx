// Configuration: every setting with its description and default, the file beside it. Changes are collected,
// checked by the gateway, shown as a difference and saved; what was changed elsewhere meanwhile is shown.

import { type Signal, useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type {
  CheckedChanges,
  ConfigurationSchema,
  Difference,
  SettingProblem,
  ShownConfiguration,
} from '../../../features/configuration/rules/views.ts';
import { changedPaths, type JsonValue, valueAt } from '../../../kernel/config/json-paths.ts';
import { Button, Problem, Said } from '../controls.tsx';
import {
  changed,
  type Draft,
  editOf,
  isWithin,
  onTop,
  parsed,
  type Schema,
  sentOf,
  shownText,
  withDraft,
} from './configuration-fields.ts';
import { FileText, ProblemList } from './configuration-file.tsx';
import { type Form, Sections } from './configuration-form.tsx';
import { Change, History } from './configuration-history.tsx';
import { FIRST_ASKED } from './first-asked.ts';
import {
  Page,
  type PageParts,
  problemText,
  Shown,
  useLive,
  useRead,
  type ViewProps,
} from './parts.tsx';
import { SetupTabs } from './setup-parts.tsx';

const CONFIGURATION = '/api/v1/configuration';
const NO_DRAFT: Draft = new Map();
const CONFLICT = 409;

export function Configuration({ parts }: ViewProps) {
  const live = useLive<ShownConfiguration>(parts, FIRST_ASKED.configuration.live);
  const { found: schema, problem } = useRead<ConfigurationSchema>(
    parts,
    FIRST_ASKED.configuration.schema,
  );
  return (
    <Page title={t`Configuration`}>
      <SetupTabs shown="#/configuration" />
      <Problem class="view-problem" text={problem.value} />
      <Shown
        live={live}
        show={(shown) =>
          schema.value === undefined ? (
            <p class="loading" role="status">{t`Loading…`}</p>
          ) : (
            <Editor latest={shown} known={schema.value} parts={parts} />
          )
        }
      />
    </Page>
  );
}

type EditorProps = {
  readonly latest: ShownConfiguration;
  readonly known: ConfigurationSchema;
  readonly parts: PageParts;
};

/** What a person works on: begun with one version of the file, and kept until it is saved or discarded. */
type Work = {
  readonly base: ShownConfiguration;
  readonly draft: Draft;
  readonly problems: readonly SettingProblem[];
  /** The file as edited: the form only shows it then. */
  readonly text?: string;
  /** Shown before it is saved. */
  readonly review?: readonly Difference[];
};

function Editor({ latest: streamed, known, parts }: EditorProps) {
  /** What was saved here, until the stream shows something newer than the version that it replaced. */
  const saved = useSignal<{ shown: ShownConfiguration; instead: string } | undefined>(undefined);
  const isAhead = saved.value?.instead === streamed.version;
  const latest = (isAhead ? saved.value?.shown : undefined) ?? streamed;
  const work = useSignal<Work>({ base: streamed, draft: NO_DRAFT, problems: [] });
  const said = useSignal('');
  const problem = useSignal('');
  const isBusy = useSignal(false);
  const filter = useSignal({ words: '', onlyChanged: false });
  const { review, ...own } = work.value;
  const { draft, problems, text } = own;
  const isEdited = draft.size > 0 || text !== undefined;
  // Without changes of one's own there is nothing that an edit elsewhere could be in conflict with.
  const base = isEdited ? own.base : latest;
  const isStale = base.version !== latest.version;
  const written = base.written ?? {};
  const current = (text === undefined ? undefined : parsed(text)) ?? withDraft(written, draft);
  const form: Form = {
    ...{ current, draft, variables: latest.variables, atStart: known.atStart },
    problems: problems.length > 0 ? problems : latest.problems,
    isReadOnly: latest.written === undefined || text !== undefined,
    words: filter.value.words
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== ''),
    onlyChanged: filter.value.onlyChanged,
    change(path, change) {
      said.value = '';
      const next = changed(draft, written, path, change);
      const others = problems.filter((one) => !isWithin(one.path, path));
      work.value = { base, draft: next, problems: others };
    },
  };

  async function send(path: string): Promise<unknown> {
    isBusy.value = true;
    problem.value = '';
    try {
      return await parts.api.postJson(path, { version: base.version, ...sentOf(own) });
    } catch (error) {
      // The conflict is shown as soon as the new file arrives.
      if (!isConflict(error)) problem.value = problemText(error);
      work.value = { ...own, base };
      return undefined;
    } finally {
      isBusy.value = false;
    }
  }

  async function check() {
    const checked = (await send(`${CONFIGURATION}/check`)) as CheckedChanges | undefined;
    if (checked === undefined) return;
    const { problems: found, differences } = checked;
    work.value = {
      ...{ ...own, base, problems: found },
      ...(found.length > 0 ? {} : { review: differences }),
    };
  }

  async function save(differences: readonly Difference[]) {
    const shown = (await send(CONFIGURATION)) as ShownConfiguration | undefined;
    if (shown === undefined) return;
    saved.value = { shown, instead: base.version };
    work.value = { base: shown, draft: NO_DRAFT, problems: [] };
    said.value = savedText(differences);
  }

  const discard = () => {
    work.value = { base: latest, draft: NO_DRAFT, problems: [] };
    problem.value = '';
  };

  return (
    <>
      <Said text={said.value} />
      <ProblemList problems={form.problems} isDraft={problems.length > 0} />
      {isStale && (
        <Conflict
          base={base}
          latest={latest}
          draft={text === undefined ? draft : editOf(text, written)}
          keep={() => {
            const mine = text === undefined ? {} : { text: onTop(text, written, latest.written) };
            work.value = { base: latest, draft, problems: [], ...mine };
          }}
          discard={discard}
        />
      )}
      {review !== undefined && !isStale ? (
        <Review
          differences={review}
          isBusy={isBusy.value}
          save={() => save(review)}
          back={() => {
            work.value = { ...own, base };
          }}
        />
      ) : (
        <>
          <Filter filter={filter} />
          <div class="beside">
            <Sections schema={known.schema as Schema} form={form} />
            <section class="card config-file" aria-labelledby="file">
              <h2 id="file">{t`config.json`}</h2>
              <FileText
                text={text ?? shownText(current)}
                line={text === undefined ? undefined : problems.find(({ line }) => line)?.line}
                isReadOnly={latest.written === undefined}
                edit={(edited) => {
                  said.value = '';
                  const isSame = edited === shownText(withDraft(written, draft));
                  work.value = { base, draft, problems: [], ...(isSame ? {} : { text: edited }) };
                }}
              />
            </section>
          </div>
        </>
      )}
      <Problem text={problem.value} />
      {!isEdited && (
        <History
          parts={parts}
          version={latest.version}
          restored={(shown) => {
            saved.value = { shown, instead: latest.version };
            said.value = t`That version is in force again.`;
          }}
        />
      )}
      {isEdited && !isStale && review === undefined && (
        <div class="card save-bar">
          <div class="actions">
            <span role="status">
              {text === undefined
                ? t`Not saved: ${draft.size}`
                : t`Not saved: the file as you edited it. The form shows it.`}
            </span>
            <Button
              text={t`Review the changes`}
              look="primary"
              disabled={isBusy.value}
              onClick={check}
            />
            <Button text={t`Discard`} onClick={discard} />
          </div>
        </div>
      )}
    </>
  );
}

const isConflict = (error: unknown) =>
  error instanceof Error && 'status' in error && error.status === CONFLICT;

function savedText(differences: readonly Difference[]): string {
  const pathsOf = (applies: Difference['applies']) =>
    differences.filter((one) => one.applies === applies).map(({ path }) => path);
  const atStart = pathsOf('start');
  if (atStart.length > 0) return t`Saved. Start the gateway again for: ${atStart.join(', ')}.`;
  if (pathsOf('channel').length > 0) return t`Saved. The channel restarts.`;
  return t`Saved. It counts from the next message on.`;
}

type FilterProps = {
  readonly filter: Signal<{ readonly words: string; readonly onlyChanged: boolean }>;
};

function Filter({ filter }: FilterProps) {
  return (
    <search class="filter">
      <input
        type="search"
        value={filter.value.words}
        placeholder={t`Search the settings`}
        aria-label={t`Search the settings`}
        onInput={({ currentTarget }) => {
          filter.value = { ...filter.value, words: currentTarget.value };
        }}
      />
      <label class="filter-choice">
        <input
          type="checkbox"
          checked={filter.value.onlyChanged}
          onChange={({ currentTarget }) => {
            filter.value = { ...filter.value, onlyChanged: currentTarget.checked };
          }}
        />
        {t`Only changed`}
      </label>
    </search>
  );
}

type ConflictProps = {
  readonly base: ShownConfiguration;
  readonly latest: ShownConfiguration;
  readonly draft: Draft;
  readonly keep: () => void;
  readonly discard: () => void;
};

/** What was changed elsewhere beside what is not saved here. */
function Conflict({ base, latest, draft, keep, discard }: ConflictProps) {
  const paths = changedPaths(base.written ?? {}, latest.written ?? {});
  const differences = paths.map((path) => ({
    ...{ path, before: valueAt(base.written, path), after: valueAt(latest.written, path) },
    own: [...draft].find(([one]) => isWithin(one, path) || isWithin(path, one)),
  }));
  return (
    <section class="card" aria-labelledby="conflict" role="alert">
      <h2 id="conflict">{t`config.json was changed elsewhere`}</h2>
      <p>
        {latest.written === undefined
          ? t`The file is no JSON now. Correct it, then go on here.`
          : t`Your changes are not saved. This is different in the file now:`}
      </p>
      {differences.map(({ path, before, after, own }) => (
        <div key={path}>
          <Change path={path} before={before} after={after} />
          {own !== undefined && (
            <p>
              {t`Yours:`}{' '}
              <bdi>{own[1].isSecret === true ? t`a new secret` : shortText(own[1].value)}</bdi>
            </p>
          )}
        </div>
      ))}
      <div class="actions">
        <Button
          text={t`Keep my changes on top of it`}
          look="primary"
          disabled={latest.written === undefined}
          onClick={keep}
        />
        <Button text={t`Discard my changes`} onClick={discard} />
      </div>
    </section>
  );
}

function Review(props: {
  readonly differences: readonly Difference[];
  readonly isBusy: boolean;
  readonly save: () => void;
  readonly back: () => void;
}) {
  const { differences, isBusy, save, back } = props;
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => heading.current?.focus(), []);
  return (
    <section class="card" aria-labelledby="review">
      <h2 id="review" ref={heading} tabIndex={-1}>
        {t`What changes`}
      </h2>
      {differences.length === 0 && <p>{t`Nothing: the file says so already.`}</p>}
      {differences.map(({ path, before, after, applies }) => (
        <Change key={path} path={path} before={before} after={after}>
          {applies === 'start' && <span class="badge">{t`when the gateway starts again`}</span>}
          {applies === 'channel' && <span class="badge">{t`the channel restarts`}</span>}
        </Change>
      ))}
      <div class="actions">
        <Button text={t`Save`} look="primary" disabled={isBusy} onClick={save} />
        <Button text={t`Back to the form`} onClick={back} />
      </div>
    </section>
  );
}

const shortText = (value: JsonValue | undefined) =>
  value === undefined ? t`the default` : JSON.stringify(value);
