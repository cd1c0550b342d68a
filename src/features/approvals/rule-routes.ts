// Allow rules over HTTP.

import { endpoint, Refusal, type RouteHandlers, watched } from '../../kernel/http-routes.ts';
import type { PersonSender } from '../../kernel/message/message.ts';
import type { AuditLog } from '../../kernel/observe/telemetry.ts';
import { shownText } from '../../kernel/questions/rules/question-text.ts';
import { headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { ALWAYS, type AllowRules } from './allow-rules.ts';
import { oneRule, type RuleList, revoked, ruleList } from './rules/views.ts';

export type RuleControl = Pick<AllowRules, 'list' | 'takeBack'>;

type RuleRoutesDeps = {
  readonly standing: RuleControl;
  /** The sender in whose name decisions are made. */
  readonly owner: PersonSender;
  readonly audit: AuditLog;
  readonly clock: Pick<Clock, 'sleep'>;
};

/** Of what a rule covers. */
const MAX_ABOUT_CHARS = 300;

export function ruleRoutes({ standing, owner, audit, clock }: RuleRoutesDeps) {
  const shown = async (): Promise<RuleList> => {
    const rules = (await standing.list()).map(({ yes, until, used }) => {
      const { id, tool, access, asker, givenAt } = yes;
      return {
        ...{ id, tool, access, asker, givenAt, uses: used?.uses ?? 0 },
        about: shownText(headOf(yes.about, MAX_ABOUT_CHARS)),
        ...(until === ALWAYS ? {} : { until }),
        ...(used === undefined ? {} : { lastUsedAt: used.lastAt }),
      };
    });
    return { rules };
  };
  return {
    'GET /api/v1/approvals/rules': endpoint(
      { summary: t`The allow rules in force`, answer: ruleList },
      shown,
    ),
    'GET /api/v1/approvals/rules/events': watched(
      { summary: t`The allow rules in force, now and after each change`, answer: ruleList },
      clock,
      shown,
    ),
    'POST /api/v1/approvals/rules/:id/revoke': endpoint(
      { summary: t`Revoke an allow rule`, params: oneRule, answer: revoked },
      async ({ id }) => {
        if ((await standing.takeBack(id)) !== 1)
          throw new Refusal(404, 'not_found', t`There is no such allow rule any more.`);
        const fields = { subject: 'standing', action: 'revoked', about: id, by: owner.id };
        audit.note({ kind: 'approval', fields });
        return { result: t`Allow rule revoked.` };
      },
    ),
  } satisfies RouteHandlers;
}
