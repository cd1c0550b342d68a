// People and approvals: who waits for a decision, what waits for an approval, the allow rules, and the
// people with their roles, channels, approvals and limits.

import { useEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { RuleList } from '../../../features/approvals/rules/views.ts';
import type { PeopleView } from '../../../features/people/rules/views.ts';
import { Button, Form, Options, Problem, Said } from '../controls.tsx';
import { FIRST_ASKED } from './first-asked.ts';
import {
  Ago,
  Fact,
  Markdown,
  Moment,
  Page,
  Shown,
  useAct,
  useLive,
  type ViewProps,
} from './parts.tsx';
import { type Decide, PersonCard, PolicyChoice, ROLES } from './person.tsx';

const PEOPLE = '/api/v1/people';
const RULES = '/api/v1/approvals/rules';

const DECISIONS = [
  ['once', t`Allow once`],
  ['allow', t`Allow`],
  ['block', t`Block`],
  ['drop', t`Answer myself`],
] as const;
const ROLE_NAMES: Readonly<Record<string, string>> = {
  owners: t`Owners`,
  trusted: t`Trusted people`,
};

export function People({ parts }: ViewProps) {
  const live = useLive<PeopleView>(parts, FIRST_ASKED.people.live);
  const rules = useLive<RuleList>(parts, FIRST_ASKED.people.rules);
  const { isBusy, said, problem, act } = useAct();
  const answered = useRef<HTMLParagraphElement>(null);
  const waiting = live.value.value;
  const count = (waiting?.unknownSenders.length ?? 0) + (waiting?.questions.length ?? 0);
  useEffect(() => {
    if (waiting !== undefined) parts.waiting.value = count;
  }, [waiting, count]);

  /** One decision at a time; the answer says what was done. */
  const decide: Decide = async (path, body) => {
    if (isBusy.value) return false;
    return act(async () => {
      const answer = (await parts.api.postJson(path, body)) as { readonly result: string };
      said.value = answer.result;
    });
  };
  // What was pressed is gone with what it decided.
  useEffect(() => {
    if (said.value !== '' && document.activeElement === document.body) answered.current?.focus();
  }, [said, live.value, rules.value]);

  return (
    <Page title={t`People`}>
      <Said text={said.value} tabIndex={-1} ref={answered} />
      <Problem class="view-problem" text={problem.value} />
      <Shown
        live={live}
        show={(people) => (
          <>
            <Waiting people={people} decide={decide} />
            <Rules rules={rules.value.value?.rules ?? []} decide={decide} />
            <Known people={people} decide={decide} />
            <Admissions people={people} decide={decide} />
            <Policies policies={people.policies} decide={decide} />
          </>
        )}
      />
    </Page>
  );
}

type PartProps = { readonly decide: Decide };

function Waiting({ people, decide }: PartProps & { readonly people: PeopleView }) {
  const { unknownSenders, questions } = people;
  return (
    <section class="section" aria-labelledby="waiting">
      <h2 id="waiting">{t`Waiting for you`}</h2>
      {unknownSenders.length + questions.length === 0 && (
        <p class="soft">{t`Nobody is waiting.`}</p>
      )}
      <ul class="cards">
        {unknownSenders.map((sender) => (
          <UnknownSender
            key={`${sender.channel} ${sender.userId}`}
            sender={sender}
            decide={decide}
          />
        ))}
        {questions.map((question) => (
          <Question key={question.id} question={question} decide={decide} />
        ))}
      </ul>
    </section>
  );
}

type UnknownSenderProps = {
  readonly sender: PeopleView['unknownSenders'][number];
  readonly decide: Decide;
};

function UnknownSender({ sender, decide }: UnknownSenderProps) {
  const { channel, userId, name, excerpt, at, messages } = sender;
  const who = name === '' ? userId : name;
  return (
    <li class="card" data-sender={userId}>
      <h3>
        <bdi>{who}</bdi> <span class="badge">{t`unknown sender`}</span>
      </h3>
      <p class="soft">
        {channel} <code>{userId}</code>
      </p>
      {excerpt !== '' && (
        <blockquote>
          <bdi>{excerpt}</bdi>
        </blockquote>
      )}
      <p class="soft">
        {messages > 1 && t`${messages} messages, `}
        <Ago at={at} />
      </p>
      <fieldset class="actions" aria-label={t`About ${who}`}>
        {DECISIONS.map(([action, label]) => (
          <Button
            key={action}
            text={label}
            onClick={() => decide(`${PEOPLE}/unknown-senders`, { channel, userId, action })}
          />
        ))}
      </fieldset>
      <p class="soft">
        {t`Allow once answers what is there; Allow lets them in as a trusted person; Block refuses them silently from now on.`}
      </p>
    </li>
  );
}

type QuestionProps = PartProps & { readonly question: PeopleView['questions'][number] };

function Question({ question, decide }: QuestionProps) {
  const { id, channel, markdown, expiresAt, choices } = question;
  return (
    <li class="card" data-question={id}>
      <Markdown text={markdown} />
      <p class="soft">
        {t`Asked on ${channel}, expires`} <Moment at={expiresAt} />
      </p>
      <fieldset class="actions" aria-label={t`Your answer`}>
        {choices.map(({ label, token }) => (
          <Button key={token} text={label} onClick={() => decide(`${PEOPLE}/answers`, { token })} />
        ))}
      </fieldset>
    </li>
  );
}

function Rules({ rules, decide }: PartProps & RuleList) {
  if (rules.length === 0) return null;
  return (
    <section class="section" aria-labelledby="rules">
      <h2 id="rules">{t`Allow rules`}</h2>
      <p class="soft">{t`What runs without a question while no untrusted content is in view.`}</p>
      <ul class="cards">
        {rules.map(({ id, tool, about, access, asker, givenAt, until, uses, lastUsedAt }) => (
          <li key={id} class="card" data-rule={id}>
            <h3>
              <bdi>{tool}</bdi> <span class="badge">{access}</span>
            </h3>
            <pre dir="auto">{about}</pre>
            <dl class="facts">
              <Fact name={t`Asked by`}>
                <Markdown text={asker} />
              </Fact>
              <Fact name={t`Given`}>
                <Moment at={givenAt} />
              </Fact>
              <Fact name={t`Ends`}>
                {until === undefined ? t`when it is revoked` : <Moment at={until} />}
              </Fact>
              <Fact name={t`Used`}>
                {uses === 0 ? t`not yet` : t`${uses} times`}
                {lastUsedAt !== undefined && (
                  <>
                    {', '}
                    <Ago at={lastUsedAt} />
                  </>
                )}
              </Fact>
            </dl>
            <fieldset class="actions" aria-label={t`About ${tool}`}>
              <Button text={t`Revoke`} onClick={() => decide(`${RULES}/${id}/revoke`, {})} />
            </fieldset>
          </li>
        ))}
      </ul>
    </section>
  );
}

const LET_IN_AS = ['trusted', 'guest', 'owner', 'blocked'] as const;

type KnownProps = { readonly people: PeopleView; readonly decide: Decide };

function Known({ people: { persons, personCount }, decide }: KnownProps) {
  const more = personCount - persons.length;
  return (
    <section class="section" aria-labelledby="known">
      <h2 id="known">{t`Known people`}</h2>
      {persons.length === 0 && <p class="soft">{t`Nobody has written yet.`}</p>}
      <div class="settings">
        {persons.map((person) => (
          <PersonCard key={person.id} person={person} others={persons} decide={decide} />
        ))}
      </div>
      {more > 0 && <p class="soft">{t`and ${more} more: nanobot people list`}</p>}
    </section>
  );
}

/** People are let in before they write, by their id. */
function Admissions({ people: { admissions, channels }, decide }: KnownProps) {
  const form = useRef<HTMLFormElement>(null);

  async function letIn(typed: FormData) {
    const isDone = await decide(`${PEOPLE}/admissions`, {
      ...Object.fromEntries(typed),
      userId: String(typed.get('userId')).trim(),
    });
    if (isDone) form.current?.reset();
  }

  return (
    <section class="card" aria-labelledby="let-in">
      <h2 id="let-in">{t`Let somebody in`}</h2>
      <p class="soft">
        {t`Before they write, by their id: the number of a Telegram account, a phone number with its country code, a mail address, or a Lark id. Who writes first waits above for your decision.`}
      </p>
      <Form ref={form} class="person-form" aria-labelledby="let-in" submit={letIn}>
        <label>
          {t`Channel`}
          <select name="channel">
            <Options of={channels.map(({ name, label }) => [name, label])} />
          </select>
        </label>
        <label>
          {t`Id`}
          <input name="userId" required maxLength={320} autocomplete="off" autocapitalize="none" />
        </label>
        <label>
          {t`Role`}
          <select name="role">
            <Options of={LET_IN_AS.map((role) => [role, ROLES[role]])} />
          </select>
        </label>
        <div class="actions">
          <Button text={t`Save`} type="submit" />
        </div>
      </Form>
      {admissions.length > 0 && (
        <ul class="runs" aria-label={t`Decided, and no message since`}>
          {admissions.map(({ channel, userId, name, role, at }) => (
            <li key={`${channel} ${userId}`} class="actions" data-admission={userId}>
              <span>
                {channel} <code>{userId}</code> <bdi>{name}</bdi>{' '}
                <span class={role === 'blocked' ? 'badge bad' : 'badge'}>{ROLES[role]}</span>{' '}
                <span class="soft">
                  <Ago at={at} />
                </span>
              </span>
              <Button
                text={t`Undo`}
                look="small"
                aria-label={t`Undo for ${userId}`}
                onClick={() => decide(`${PEOPLE}/admissions`, { channel, userId, role: 'none' })}
              />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** Of owners, of trusted people, and of groups. */
function Policies({
  policies,
  decide,
}: Pick<PeopleView, 'policies'> & { readonly decide: Decide }) {
  return (
    <section class="card" aria-labelledby="policies">
      <h2 id="policies">{t`How much is asked`}</h2>
      <p class="soft">
        {t`normal: what can leave this machine or changes instructions. strict: every program, job and letter. open: nothing, unless untrusted content is in view.`}
      </p>
      {policies.map(({ id, approvals, configured }) => (
        <label key={id} class="policy" data-policy={id} for={`policy-${id}`}>
          <bdi>{ROLE_NAMES[id] ?? id}</bdi>
          <PolicyChoice
            id={`policy-${id}`}
            configured={configured}
            value={approvals}
            choose={(chosen) => decide(`${PEOPLE}/approvals`, { id, approvals: chosen })}
          />
        </label>
      ))}
    </section>
  );
}
