// Skills with their state: switched on and off, pinned, looked at, and added after a review from a folder,
// a repository or an archive.

import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type {
  ShownSkill,
  SkillList,
  SkillReview,
  SkillText,
} from '../../../features/skills/rules/views.ts';
import { Button, Form, Problem, Said, set } from '../controls.tsx';
import { FIRST_ASKED } from './first-asked.ts';
import { AskedTwice, ReadWhenOpen, useAct, useRead, type ViewProps } from './parts.tsx';

const SKILLS = '/api/v1/skills';

type SkillChoice = { readonly isOff?: boolean; readonly isAlways?: boolean };
type SkillPlace = { readonly where: string } | { readonly archive: string; readonly name: string };

async function placeOf(
  where: HTMLInputElement | null,
  archive: HTMLInputElement | null,
): Promise<SkillPlace> {
  const file = archive?.files?.[0];
  if (file === undefined) return { where: where?.value.trim() ?? '' };
  const address = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  return { archive: address.slice(address.indexOf(',') + 1), name: file.name };
}

const STATES: Readonly<Record<ShownSkill['state'], string>> = {
  ready: t`ready`,
  lacking: t`something is missing`,
  changed: t`changed since it was added`,
  broken: t`broken`,
  off: t`switched off`,
};

export function Skills({ parts }: ViewProps) {
  const { found, problem: unread, read } = useRead<SkillList>(parts, FIRST_ASKED.memory.skills);
  const { said, problem, act } = useAct();
  const isAdding = useSignal(false);
  const opener = useRef<HTMLButtonElement>(null);

  async function change(name: string, what: 'accept' | 'remove') {
    const done = what === 'accept' ? t`${name} is accepted as it is now.` : t`${name} was removed.`;
    await post(`${encodeURIComponent(name)}/${what}`, {}, done);
    opener.current?.focus();
  }

  const choose = (name: string, what: SkillChoice) =>
    post(`${encodeURIComponent(name)}/choose`, what, t`Saved. It counts from the next message on.`);

  const post = (path: string, body: object, done: string) =>
    act(async () => {
      await parts.api.postJson(`${SKILLS}/${path}`, body);
      await read();
    }, done);

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
        <Button
          text={t`Add a skill`}
          ref={opener}
          aria-expanded={isAdding.value}
          onClick={set(isAdding, !isAdding.value)}
        />
      </div>
      <p class="soft">{t`Instructions for kinds of tasks. The agent follows them like your own; they give it no additional rights.`}</p>
      {isAdding.value && <AddSkill parts={parts} added={added} />}
      <Said text={said.value} />
      <Problem text={problem.value || unread.value} />
      <ul class="cards">
        {found.value?.skills.map((skill) => (
          <SkillCard key={skill.name} skill={skill} parts={parts} change={change} choose={choose} />
        ))}
      </ul>
    </section>
  );
}

type SkillCardProps = ViewProps & {
  readonly skill: ShownSkill;
  readonly change: (name: string, what: 'accept' | 'remove') => Promise<void>;
  readonly choose: (name: string, what: SkillChoice) => Promise<unknown>;
};

function SkillCard({ skill, parts, change, choose }: SkillCardProps) {
  const { name, description, origin, source, isAlways, state, problem } = skill;
  return (
    <li class="card" data-skill={name}>
      <h3>
        <bdi>{name}</bdi>{' '}
        <span class={state === 'changed' || state === 'broken' ? 'badge bad' : 'badge'}>
          {STATES[state]}
        </span>
        {isAlways && <span class="badge">{t`in every prompt`}</span>}
      </h3>
      <p dir="auto">{description}</p>
      {problem !== undefined && <p class="soft">{t`Missing: ${problem}`}</p>}
      <SkillTextView name={name} parts={parts} />
      <fieldset class="actions" aria-label={t`Use of ${name}`}>
        <Button
          text={state === 'off' ? t`Switch on` : t`Switch off`}
          onClick={() => choose(name, { isOff: state !== 'off' })}
        />
        <Button
          text={isAlways ? t`Only when needed` : t`Pin to every prompt`}
          onClick={() => choose(name, { isAlways: !isAlways })}
        />
      </fieldset>
      {origin === 'workspace' && (
        <>
          {source !== undefined && (
            <p class="soft">
              {t`From`} <bdi>{source}</bdi>
            </p>
          )}
          <fieldset class="actions" aria-label={t`About ${name}`}>
            {state === 'changed' && (
              <Button text={t`Accept as it is now`} onClick={() => change(name, 'accept')} />
            )}
            <AskedTwice
              text={t`Remove…`}
              sure={t`Remove it for good`}
              onSure={() => change(name, 'remove')}
            />
          </fieldset>
        </>
      )}
    </li>
  );
}

function SkillTextView({ name, parts }: ViewProps & { readonly name: string }) {
  return (
    <ReadWhenOpen<SkillText>
      parts={parts}
      title={t`Text`}
      path={`${SKILLS}/${encodeURIComponent(name)}`}
      show={({ text, others }) => (
        <pre dir="auto">{others.length === 0 ? text : `${text}\n\n${others.join('\n')}`}</pre>
      )}
    />
  );
}

type AddSkillProps = ViewProps & { readonly added: (name: string) => Promise<void> };

function AddSkill({ parts, added }: AddSkillProps) {
  const review = useSignal<SkillReview | undefined>(undefined);
  const { isBusy, problem, act } = useAct();
  const where = useRef<HTMLInputElement>(null);
  const archive = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => where.current?.focus(), []);

  const work = (task: (from: SkillPlace) => Promise<void>) =>
    act(async () => task(await placeOf(where.current, archive.current)));
  const look = () =>
    work(async (from) => {
      review.value = (await parts.api.postJson(`${SKILLS}/review`, { from })) as SkillReview;
    });
  const add = () =>
    work(async (from) => {
      const { version, isThere, name } = review.value ?? {};
      // What was refused is reviewed again.
      review.value = undefined;
      await parts.api.postJson(SKILLS, { from, version, replace: isThere });
      await added(name ?? '');
    });

  const found = review.value;
  return (
    <Form class="card" aria-label={t`Add a skill`} submit={look}>
      <label>
        {t`Where it is`}
        <input
          ref={where}
          autocomplete="off"
          placeholder="owner/repository/folder"
          aria-describedby="where-hint"
          onInput={set(review, undefined)}
        />
      </label>
      <label>
        {t`Or an archive from this device (.tar or .tar.gz, up to 650 KB)`}
        <input ref={archive} type="file" accept=".tar,.tgz,.gz" onInput={set(review, undefined)} />
      </label>
      <p class="soft" id="where-hint">
        {t`A folder or .tar.gz file on the machine of the gateway, a URL of one, or a folder on GitHub. Nothing of it is run.`}
      </p>
      <Problem text={problem.value} />
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
          <Button text={t`Review it`} look="primary" type="submit" disabled={isBusy.value} />
        ) : (
          <Button
            text={t`Add ${found.name}`}
            look="primary"
            disabled={isBusy.value}
            onClick={add}
          />
        )}
      </div>
    </Form>
  );
}
