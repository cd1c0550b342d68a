// The doctor's check of the WhatsApp link, from what the channel last stored: the same with and
// without a running gateway, and without contacting WhatsApp.

import { type Finding, ok, warn } from '../../cli/doctor/machine-checks.ts';
import { spanText } from '../../cli/flag-values.ts';
import type { Config } from '../../kernel/config/config.ts';
import type { OpenedState } from '../../kernel/home-state.ts';
import { t } from '../../lib/texts.ts';
import { readLinkHealth, reconnectsOfLastDay } from '../channel-setup.ts';
import { judgeEnding } from './rules/endings.ts';

const CHECK = 'whatsapp-link';
const SCOPE = 'channel:whatsapp:default';
const LINK_IT = t`Link it: nanobot channels login whatsapp, or on the web page under Channels.`;

type Health = NonNullable<Awaited<ReturnType<typeof readLinkHealth>>>;

export async function checkWhatsAppLink(
  { channels }: Config,
  state: OpenedState | undefined,
  now: number,
): Promise<readonly Finding[]> {
  if (!channels.whatsapp.enabled) return [];
  const health = state === undefined ? undefined : await readLinkHealth(state.store.scope(SCOPE));
  return [linkFinding(health, now)];
}

function linkFinding(health: Health | undefined, now: number): Finding {
  const lasting = health === undefined ? undefined : lastingEnding(health);
  if (lasting !== undefined) return warn(CHECK, lasting.reason, lasting.remedy);
  if (health?.linkedNumber === undefined) {
    return warn(CHECK, t`no account is linked`, LINK_IT);
  }
  const { linkedNumber, openedAt, undecryptable } = health;
  const opened =
    openedAt === undefined ? t`never connected yet` : t`connected ${spanText(now - openedAt)} ago`;
  const facts = [
    t`linked to +${linkedNumber.replace(/^\+/, '')}`,
    opened,
    t`${reconnectsOfLastDay(health, now)} reconnects in the last 24 hours`,
    ...(undecryptable === 0 ? [] : [t`${undecryptable} messages could not be decrypted`]),
  ];
  return ok(CHECK, facts.join(', '));
}

/** Why the link is down until a person acts; undefined if it is not. */
function lastingEnding({ lastEnding, openedAt = 0 }: Health) {
  if (lastEnding?.code === undefined || lastEnding.at < openedAt) return undefined;
  const cause = { kind: 'closed', code: lastEnding.code, message: '' } as const;
  const verdict = judgeEnding({ cause, phase: 'open', isPaired: true, mayRollBack: false });
  return verdict.kind === 'stop' || verdict.kind === 'relink' ? verdict : undefined;
}
