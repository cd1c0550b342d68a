// The form of the configuration: a card for each section, a field for each setting, of its kind.

import { useSignal } from '@preact/signals';
import { t } from '/texts.js';
import type {
  SettingProblem,
  ShownConfiguration,
} from '../../../features/configuration/rules/views.ts';
import {
  type JsonObject,
  type JsonValue,
  joinPath,
  valueAt,
} from '../../../kernel/config/json-paths.ts';
import { Button, Problem } from '../controls.tsx';
import {
  changedWithin,
  type Draft,
  entriesOf,
  isChanged,
  isFound,
  isWithin,
  leavesOf,
  MASK,
  type Schema,
  type Setting,
  settingOf,
  settingsIn,
} from './configuration-fields.ts';
import { VariableNote } from './variable-note.tsx';

/** What every field reads, and how it reports a change. */
export type Form = {
  /** What would be written, secrets masked. */
  readonly current: JsonObject;
  readonly draft: Draft;
  readonly variables: ShownConfiguration['variables'];
  readonly problems: readonly SettingProblem[];
  readonly atStart: readonly string[];
  readonly isReadOnly: boolean;
  /** In lower case; none: all settings are shown. */
  readonly words: readonly string[];
  readonly onlyChanged: boolean;
  /** Without a value, the default applies. */
  change(path: string, change: { value?: JsonValue; isSecret?: boolean }): void;
};

type Shown = { readonly setting: Setting; readonly form: Form };

const isFiltering = ({ words, onlyChanged }: Form) => words.length > 0 || onlyChanged;

/** Whether the filter shows the setting, or one below it. */
function isShown(setting: Setting, form: Form): boolean {
  if (!isFiltering(form)) return true;
  return leavesOf(setting, form.current).some(
    (one) =>
      (!form.onlyChanged || isChanged(one, form.current) || form.draft.has(one.path)) &&
      isFound(one, form.words),
  );
}

const problemsAt = (path: string, { problems }: Form) =>
  problems.filter((one) => isWithin(one.path, path));

export function Sections({ schema, form }: { readonly schema: Schema; readonly form: Form }) {
  const sections = settingsIn({ schema, path: '' }).filter((one) => isShown(one, form));
  return sections.length === 0 ? (
    <p class="empty">
      {form.words.length > 0 ? t`No setting has these words.` : t`Every setting has its default.`}
    </p>
  ) : (
    <div class="settings">
      {sections.map((setting) => (
        <Section key={setting.path} setting={setting} form={form} />
      ))}
    </div>
  );
}

/** Folded until it is opened, searched or has a problem. */
function Section({ setting, form }: Shown) {
  const isOpen = useSignal(false);
  const { path, name, description } = setting;
  const mustOpen = isFiltering(form) || problemsAt(path, form).length > 0;
  const count = changedWithin(setting, form.current);
  return (
    <details
      class={path.includes('.') ? 'subsection' : 'card'}
      data-section={path}
      open={isOpen.value || mustOpen}
      onToggle={(event) => {
        isOpen.value = event.currentTarget.open;
      }}
    >
      <summary>
        <bdi class="setting-name">{name}</bdi>{' '}
        {count > 0 && <span class="badge">{t`${count} changed`}</span>}
        {description !== '' && <span class="soft section-about">{description}</span>}
      </summary>
      {(isOpen.value || mustOpen) && <Inside setting={setting} form={form} />}
    </details>
  );
}

function Inside({ setting, form }: Shown) {
  const isNamed = setting.kind === 'named';
  const inside = isNamed ? entriesOf(setting, form.current) : settingsIn(setting);
  const isSection = ({ kind }: Setting) => kind === 'section' || kind === 'named';
  const shown = inside.filter((one) => isShown(one, form));
  const own = form.problems.filter((one) => one.path === setting.path);
  return (
    <div class="settings">
      <Problems problems={own} />
      {[...shown.filter((one) => !isSection(one)), ...shown.filter(isSection)].map((one) => (
        <div key={one.path} class={isNamed ? 'named' : ''}>
          {isSection(one) ? (
            <Section setting={one} form={form} />
          ) : (
            <Field setting={one} form={form} />
          )}
          {isNamed && !form.isReadOnly && (
            <Button text={t`Remove ${one.name}`} onClick={() => form.change(one.path, {})} />
          )}
        </div>
      ))}
      {isNamed && !form.isReadOnly && !isFiltering(form) && (
        <AddEntry setting={setting} form={form} />
      )}
    </div>
  );
}

/** A new name in a section whose names a person chooses. */
function AddEntry({ setting, form }: Shown) {
  const name = useSignal('');
  const { additionalProperties: entry } = setting.schema;
  if (typeof entry !== 'object') return null;
  const isUsable = /^[^.\s]+$/.test(name.value);
  const add = () => {
    const { kind } = settingOf(entry, setting.path);
    const path = joinPath(setting.path, name.value);
    if (kind === 'section' || kind === 'named') form.change(path, { value: {} });
    else form.change(path, { value: entry.default ?? entry.enum?.[0] ?? '' });
    name.value = '';
  };
  return (
    <form
      class="line"
      onSubmit={(event) => {
        event.preventDefault();
        if (isUsable) add();
      }}
    >
      <input
        value={name.value}
        autocomplete="off"
        aria-label={t`Name of a new entry of ${setting.path}`}
        placeholder={t`Name`}
        onInput={({ currentTarget }) => {
          name.value = currentTarget.value.trim();
        }}
      />
      <Button text={t`Add`} type="submit" disabled={!isUsable} />
    </form>
  );
}

export function Problems({ problems }: { readonly problems: readonly SettingProblem[] }) {
  return (
    <>
      {problems.map(({ path, problem, remedy }) => (
        <p key={`${path} ${problem}`} class="problem">
          {problem}. {remedy}
        </p>
      ))}
    </>
  );
}

function Field({ setting, form }: Shown) {
  const { path, name, description, kind, schema } = setting;
  const { current, draft } = form;
  const problems = problemsAt(path, form);
  const isList = kind === 'choices';
  const hasDefault = !form.isReadOnly && kind !== 'secret' && schema.default !== undefined;
  const id = `set-${path}`;
  const hints = [
    description,
    kind === 'json' && fieldsText(schema),
    schema.default !== undefined &&
      kind !== 'secret' &&
      t`Default: ${defaultText(schema.default)}.`,
    form.atStart.some((start) => isWithin(path, start)) &&
      t`Applies when the gateway starts again.`,
  ].filter((hint) => typeof hint === 'string' && hint !== '');
  return (
    <div class="setting" data-setting={path}>
      <div class="setting-about">
        <p>
          {isList ? (
            <bdi id={`${id}-name`} class="setting-name">
              {name}
            </bdi>
          ) : (
            <label for={id} class="setting-name">
              <bdi>{name}</bdi>
            </label>
          )}{' '}
          {draft.has(path) ? (
            <span class="badge">{t`not saved`}</span>
          ) : (
            isChanged(setting, current) && <span class="badge">{t`changed`}</span>
          )}
        </p>
        <p class="soft" id={`${id}-hint`}>
          {hints.join(' ')}
        </p>
        <VariableNote variables={form.variables} path={path} />
      </div>
      <div class="setting-value">
        <Control setting={setting} form={form} id={id} />
        <Problems problems={problems} />
        {hasDefault && isChanged(setting, current) && (
          <Button
            text={t`Use the default`}
            look="small"
            aria-label={t`Use the default of ${path}`}
            onClick={() => form.change(path, {})}
          />
        )}
      </div>
    </div>
  );
}

/** What the sections of a list may hold. */
function fieldsText({ items }: Schema): string {
  const names = Object.keys(items?.properties ?? {});
  return names.length === 0 ? '' : t`A list of sections with: ${names.join(', ')}.`;
}

function defaultText(value: JsonValue): string {
  if (typeof value === 'boolean') return value ? t`on` : t`off`;
  if (value === '') return t`empty`;
  if (typeof value === 'number') return value.toLocaleString();
  if (typeof value === 'string') return value;
  const isEmpty = Object.keys(value ?? {}).length === 0;
  return isEmpty ? t`none` : listText(value);
}

const listText = (value: JsonValue) =>
  Array.isArray(value) && value.every((one) => typeof one !== 'object')
    ? value.join(', ')
    : JSON.stringify(value);

type ControlProps = Shown & { readonly id: string };

function Control(props: ControlProps) {
  switch (props.setting.kind) {
    case 'secret':
      return <SecretControl {...props} />;
    case 'switch':
    case 'choice':
      return <ChoiceControl {...props} />;
    case 'choices':
      return <ChoicesControl {...props} />;
    case 'json':
      return <JsonControl {...props} />;
    case 'texts':
      return <ListControl {...props} />;
    default:
      return <TextControl {...props} />;
  }
}

/** What is written, or the default. */
const shownValue = ({ setting: { path, schema }, form }: Shown) =>
  valueAt(form.current, path) ?? schema.default;

const isWrong = ({ setting, form }: Shown) => problemsAt(setting.path, form).length > 0;

function TextControl(props: ControlProps) {
  const { setting, form, id } = props;
  const { path, kind } = setting;
  const value = shownValue(props);
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value ?? '');
  return (
    <input
      id={id}
      value={text}
      dir="auto"
      autocomplete="off"
      spellcheck={false}
      inputMode={kind === 'number' ? 'decimal' : 'text'}
      readOnly={form.isReadOnly}
      aria-describedby={`${id}-hint`}
      aria-invalid={isWrong(props)}
      onChange={({ currentTarget }) => {
        const typed = currentTarget.value;
        const isNumber = kind === 'number' && typed.trim() !== '' && Number.isFinite(Number(typed));
        if (kind === 'number' && typed.trim() === '') form.change(path, {});
        else form.change(path, { value: isNumber ? Number(typed) : typed });
      }}
    />
  );
}

function ChoiceControl(props: ControlProps) {
  const { setting, form, id } = props;
  const { path, kind, schema } = setting;
  const value = shownValue(props);
  const choices: readonly (readonly [value: JsonValue, text: string])[] =
    kind === 'switch'
      ? [
          [true, t`on`],
          [false, t`off`],
        ]
      : (schema.enum ?? []).map((one) => [one, one === '' ? t`none` : one]);
  const isKnown = choices.some(([one]) => one === value);
  return (
    <select
      id={id}
      value={String(value ?? '')}
      disabled={form.isReadOnly}
      aria-describedby={`${id}-hint`}
      aria-invalid={isWrong(props)}
      onChange={({ currentTarget }) => {
        const chosen = choices.find(([one]) => String(one) === currentTarget.value);
        form.change(path, chosen === undefined ? {} : { value: chosen[0] });
      }}
    >
      {!isKnown && <option value={String(value ?? '')}>{String(value ?? t`not set`)}</option>}
      {choices.map(([one, text]) => (
        <option key={text} value={String(one)}>
          {text}
        </option>
      ))}
    </select>
  );
}

function ChoicesControl(props: ControlProps) {
  const { setting, form, id } = props;
  const { path, schema } = setting;
  const value = shownValue(props);
  const chosen = Array.isArray(value) ? value : [];
  return (
    <fieldset class="choices" aria-labelledby={`${id}-name`} aria-describedby={`${id}-hint`}>
      {(schema.items?.enum ?? []).map((one) => (
        <label key={one}>
          <input
            type="checkbox"
            checked={chosen.includes(one)}
            disabled={form.isReadOnly}
            onChange={({ currentTarget }) => {
              const others = chosen.filter((other) => other !== one);
              form.change(path, { value: currentTarget.checked ? [...others, one] : others });
            }}
          />
          {one}
        </label>
      ))}
    </fieldset>
  );
}

function ListControl(props: ControlProps) {
  const { setting, form, id } = props;
  const value = shownValue(props);
  const lines = Array.isArray(value) ? value : [];
  const isNumbers = setting.schema.items?.type !== 'string';
  return (
    <textarea
      id={id}
      dir="auto"
      rows={Math.min(8, lines.length + 1)}
      spellcheck={false}
      placeholder={t`One per line`}
      value={lines.join('\n')}
      readOnly={form.isReadOnly}
      aria-describedby={`${id}-hint`}
      aria-invalid={isWrong(props)}
      onChange={({ currentTarget }) => {
        const typed = currentTarget.value.split('\n').map((line) => line.trim());
        const items = typed
          .filter((line) => line !== '')
          .map((line) => (isNumbers && Number.isFinite(Number(line)) ? Number(line) : line));
        form.change(setting.path, { value: items });
      }}
    />
  );
}

function JsonControl(props: ControlProps) {
  const { setting, form, id } = props;
  const problem = useSignal('');
  const value = shownValue(props);
  const text = value === undefined ? '' : JSON.stringify(value, undefined, 2);
  return (
    <>
      <textarea
        id={id}
        rows={Math.min(12, text.split('\n').length + 1)}
        spellcheck={false}
        value={text}
        readOnly={form.isReadOnly}
        aria-describedby={`${id}-hint`}
        aria-invalid={isWrong(props) || problem.value !== ''}
        onChange={({ currentTarget }) => {
          const typed = currentTarget.value.trim();
          try {
            form.change(setting.path, typed === '' ? {} : { value: JSON.parse(typed) });
            problem.value = '';
          } catch {
            problem.value = t`This is no JSON; the change does not count.`;
          }
        }}
      />
      <Problem text={problem.value} />
    </>
  );
}

/** Never shows a secret: only whether there is one, and where it comes from. */
function SecretControl(props: ControlProps) {
  const { setting, form, id } = props;
  const { path } = setting;
  const isTyping = useSignal(false);
  const written = valueAt(form.current, path);
  const isSet = written !== undefined && written !== '';
  const isNew = form.draft.get(path)?.isSecret === true;
  const keep = (typed: string) => {
    form.change(path, { value: referenceIn(typed) ?? typed, isSecret: true });
  };
  return (
    <>
      <p>{secretText(written, isNew)}</p>
      {isTyping.value ? (
        <input
          id={id}
          type="password"
          autocomplete="new-password"
          aria-describedby={`${id}-hint`}
          aria-invalid={isWrong(props)}
          onChange={({ currentTarget }) => {
            if (currentTarget.value !== '') keep(currentTarget.value);
            isTyping.value = false;
          }}
        />
      ) : (
        !form.isReadOnly && (
          <div class="actions">
            <Button
              text={isSet ? t`Replace` : t`Set`}
              look="small"
              id={id}
              aria-label={isSet ? t`Replace ${path}` : t`Set ${path}`}
              aria-describedby={`${id}-hint`}
              onClick={() => {
                isTyping.value = true;
                setTimeout(() => document.getElementById(id)?.focus());
              }}
            />
            {isSet && (
              <Button
                text={t`Clear`}
                look="small"
                aria-label={t`Clear ${path}`}
                onClick={() => form.change(path, {})}
              />
            )}
          </div>
        )
      )}
    </>
  );
}

function secretText(written: JsonValue | undefined, isNew: boolean): string {
  if (isNew) return t`A new secret, not saved yet.`;
  if (written === undefined || written === '') return t`Not set`;
  if (written === MASK) return t`Set`;
  return typeof written === 'string' ? written : t`Elsewhere: ${JSON.stringify(written)}`;
}

/** `{ "env": "NAME" }` and the like: where the secret is. */
function referenceIn(typed: string): JsonValue | undefined {
  if (!typed.trim().startsWith('{')) return undefined;
  try {
    return JSON.parse(typed) as JsonValue;
  } catch {
    return undefined;
  }
}
