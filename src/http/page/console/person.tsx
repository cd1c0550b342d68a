// One person: role, channels, approvals, language, times and limits, each of which an owner changes.

import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { PeopleView, ShownPerson } from '../../../features/people/rules/views.ts';
import { Button, bound, Form, Options } from '../controls.tsx';

const PEOPLE = '/api/v1/people';
const AUTOMATIC = 'auto';
const POLICIES = [
  [AUTOMATIC, t`as configured`],
  ['strict', t`strict`],
  ['normal', t`normal`],
  ['open', t`open`],
] as const;
export const ROLES: Readonly<Record<ShownPerson['role'], string>> = {
  owner: t`owner`,
  trusted: t`trusted`,
  guest: t`guest`,
  blocked: t`blocked`,
  unknown: t`unknown sender`,
};
const LIMITS = [
  ['perMinute', 'messagesPerMinute', t`Messages a minute`],
  ['perDay', 'messagesPerDay', t`Messages a day`],
  ['tokensPerDay', 'tokensPerDay', t`Tokens a day`],
  ['moneyPerDay', 'moneyPerDay', t`Money a day`],
] as const;

/** Resolves to whether it was done. */
export type Decide = (path: string, body: object) => Promise<boolean>;

type PersonProps = {
  readonly person: ShownPerson;
  readonly others: readonly ShownPerson[];
  readonly decide: Decide;
};

const pathOf = ({ id }: ShownPerson) => `${PEOPLE}/${encodeURIComponent(id)}`;
const nameOf = ({ name, id, channels }: ShownPerson) => {
  if (name !== '') return name;
  // Only the owner can log in on the page.
  return channels.some(({ channel }) => channel === 'web') ? t`You` : t`No name (${id})`;
};

export function PersonCard({ person, others, decide }: PersonProps) {
  const { id, role, channels } = person;
  return (
    <details class="card" data-person={id}>
      <summary>
        <b>
          <bdi>{nameOf(person)}</bdi>
        </b>{' '}
        <span class={role === 'blocked' ? 'badge bad' : 'badge'}>{ROLES[role]}</span>
        <span class="soft section-about">
          {channels.map(({ channel, ids }) => `${channel} ${ids.join(', ')}`).join(' · ')}
        </span>
      </summary>
      <div class="settings">
        <Settings person={person} decide={decide} />
        <Channels person={person} others={others} decide={decide} />
      </div>
    </details>
  );
}

type Values = Readonly<Record<string, string>>;

const valuesIn = (form: HTMLFormElement): Values =>
  Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value).trim()]));

/** What differs from the values that were drawn, as it is sent: an emptied field is as configured. */
const changedIn = (values: Values, drawn: Values): Values =>
  Object.fromEntries(
    Object.entries(values)
      .filter(([name, value]) => value !== drawn[name])
      .map(([name, value]) => [name, value === '' && name !== 'name' ? AUTOMATIC : value]),
  );

function Settings({ person, decide }: Omit<PersonProps, 'others'>) {
  const { role, limits } = person;
  const before: Values = {
    ...{ name: person.name, role, conversations: person.conversations },
    approvals: person.approvals ?? AUTOMATIC,
    language: person.language ?? '',
    timezone: person.timeZone ?? '',
    quiet: person.quietHours ?? '',
    channel: person.preferredChannel ?? '',
    ...Object.fromEntries(LIMITS.map(([key, flag]) => [flag, String(limits[key] ?? '')])),
  };
  const form = useRef<HTMLFormElement>(null);
  const drawn = useRef(before);
  const drawings = useSignal(0);
  const text = JSON.stringify(before);
  // What somebody else changed is drawn, but not over what is being typed here.
  useEffect(() => {
    const values = form.current === null ? {} : valuesIn(form.current);
    if (Object.keys(changedIn(values, drawn.current)).length > 0) return;
    drawn.current = before;
    drawings.value += 1;
  }, [text]);

  async function save() {
    if (form.current === null) return;
    const values = valuesIn(form.current);
    if (await decide(pathOf(person), changedIn(values, drawn.current)))
      drawn.current = { ...drawn.current, ...values };
  }

  const field = (name: string, label: string, hint: string) => (
    <label>
      {label}
      <input
        name={name}
        defaultValue={before[name]}
        placeholder={hint}
        autocomplete="off"
        dir="auto"
      />
    </label>
  );
  const choice = (name: string, label: string, options: readonly (readonly [string, string])[]) => (
    <label>
      {label}
      <select name={name} defaultValue={before[name]}>
        <Options of={options} chosen={before[name]} />
      </select>
    </label>
  );
  // The person who uses this page cannot be blocked.
  const isLocal = person.channels.some(({ channel }) => channel === 'web');
  const roles = (['owner', 'trusted', 'guest', 'blocked'] as const)
    .filter((one) => !isLocal || one !== 'blocked')
    .map((one) => [one, ROLES[one]] as const);
  const isListed = roles.some(([one]) => one === role);
  return (
    <Form
      ref={form}
      key={drawings.value}
      class="person-form"
      aria-label={t`Settings of ${nameOf(person)}`}
      submit={save}
    >
      {choice('role', t`Role`, isListed ? roles : [[role, ROLES[role]], ...roles])}
      {person.approvals !== undefined && choice('approvals', t`Approvals`, POLICIES)}
      {field('name', t`Name`, '')}
      {field('language', t`Language`, t`that of each message`)}
      {field('timezone', t`Time zone`, t`as configured`)}
      {field('quiet', t`Quiet hours`, t`as configured`)}
      {choice('channel', t`Channel when another one is down`, [
        ['', t`any`],
        ...person.channels.map(({ channel }) => [channel, channel] as const),
      ])}
      {choice('conversations', t`Conversations`, [
        ['each', t`one for each channel`],
        ['shared', t`one for all channels`],
      ])}
      {LIMITS.map(([, flag, label]) => (
        <span key={flag}>{field(flag, label, t`as configured`)}</span>
      ))}
      <p class="soft">{t`A limit of 0 is no limit; an empty field is as configured.`}</p>
      <div class="actions">
        <Button text={t`Save`} look="primary" type="submit" />
      </div>
    </Form>
  );
}

/** The accounts that are one person, taken apart and put together. */
function Channels({ person, others, decide }: PersonProps) {
  const { id, channels } = person;
  const other = useSignal('');
  const leaving = useSignal('');
  const further = others.filter((one) => one.id !== id);
  return (
    <section class="section" aria-label={t`Linked accounts`}>
      <h3>{t`Linked accounts`}</h3>
      <ul class="runs">
        {channels.map(({ channel, ids }) => (
          <li key={channel} class="actions">
            <span>
              {channel} <code>{ids.join(', ')}</code>
            </span>
            {channels.length > 1 && (
              <Button
                text={
                  leaving.value === channel
                    ? t`Really disconnect ${channel}`
                    : t`Disconnect ${channel}…`
                }
                look="small"
                onClick={() => {
                  if (leaving.value !== channel) leaving.value = channel;
                  else void decide(`${pathOf(person)}/unlink`, { channel });
                }}
              />
            )}
          </li>
        ))}
      </ul>
      {further.length > 0 && (
        <details>
          <summary>{t`The same person as…`}</summary>
          <p class="soft">{t`This person gets the accounts of the other one, who is no person of their own any more.`}</p>
          <div class="line">
            <select aria-label={t`The other person`} {...bound(other)}>
              <Options
                of={[['', t`choose`], ...further.map((one) => [one.id, nameOf(one)] as const)]}
              />
            </select>
            <Button
              text={t`Put together`}
              disabled={other.value === ''}
              onClick={() => decide(`${pathOf(person)}/merge`, { id: other.value })}
            />
          </div>
        </details>
      )}
    </section>
  );
}

type PolicyProps = {
  readonly id: string;
  /** In force while nothing else is chosen. */
  readonly configured: PeopleView['policies'][number]['configured'];
  readonly value: string;
  readonly choose: (policy: string) => Promise<boolean>;
};

export function PolicyChoice({ id, configured, value, choose }: PolicyProps) {
  const named = POLICIES.find(([policy]) => policy === configured)?.[1] ?? configured;
  return (
    <select id={id} value={value} onChange={({ currentTarget }) => choose(currentTarget.value)}>
      <Options
        of={POLICIES.map(([policy, label]) => [
          policy,
          policy === AUTOMATIC ? t`as configured: ${named}` : label,
        ])}
      />
    </select>
  );
}
