// Onboarding of WhatsApp: whose number it is, who may write, and linking it by QR or by a code;
// then, for a number of the agent's own, a link whose first message makes its sender the owner.

import { numberEntries } from '../../cli/flag-values.ts';
import {
  type Asker,
  currentConfig,
  type Settings,
  type SetupHost,
  save,
} from '../../features/setup/asker.ts';
import { offerPairing } from '../../features/setup/pairing.ts';
import { t } from '../../lib/texts.ts';
import { linkWhatsApp } from '../channel-setup.ts';
import { isAllowEntry, normaliseAllowed, phoneDigits } from './rules/jid.ts';
import type { WhatsAppConfig } from './settings.ts';

export type WhatsAppFlags = {
  /** False for --no-whatsapp. */
  readonly whatsapp?: boolean;
  /** International number of the account, digits only. */
  readonly whatsappPhone?: string;
  /** The number is the person's own. */
  readonly whatsappSelf?: boolean;
  readonly whatsappAllow?: readonly string[];
  /** Seconds to wait for the owner's first message. */
  readonly pairWait?: number;
};

const CHANNEL = 'whatsapp';
const RISK =
  t`WhatsApp does not support programs on private accounts. nanobot links as an unofficial client, ` +
  t`and WhatsApp may block the number. Use a spare number, not one you depend on.`;
const WORDS = {
  scan:
    t`On your phone open WhatsApp > Settings (Android: menu) > Linked devices > Link a device, ` +
    t`then scan this code.`,
  type: t`Or choose "Link with phone number instead" and enter:`,
};

export async function setUpWhatsApp(
  host: SetupHost,
  asker: Asker,
  flags: WhatsAppFlags,
  isRetry = false,
): Promise<string | undefined> {
  if (flags.whatsapp === false) return undefined;
  const isWanted = isRetry || flags.whatsapp === true;
  if (!isWanted && !(await asker.confirm(t`Connect WhatsApp?`, false))) return undefined;
  const { whatsapp: known } = (await currentConfig(host)).channels;
  asker.warn(RISK);
  const settings = await askSettings(asker, flags, known);
  await save(host, prefixed(settings));
  const { phoneNumber } = settings;
  const { home, env, clock } = host;
  const login = phoneNumber === '' ? {} : { phoneNumber };
  const account = await asker.logIn({
    channel: CHANNEL,
    options: login,
    words: WORDS,
    isRestarting: known.enabled && restarts(known, settings),
    alone: (signal) => linkWhatsApp({ home, env, clock, login }, signal),
  });
  asker.say(t`Linked: ${account}.`);
  if (settings.selfChat) {
    asker.say(t`The agent answers in your chat with yourself ("Message yourself").`);
  } else {
    await pairOwner(host, asker, account, flags);
  }
  return t`WhatsApp ${account}`;
}

type Asked = Pick<WhatsAppConfig, 'selfChat' | 'phoneNumber'> & {
  readonly allowFrom: readonly string[];
  readonly strangers?: WhatsAppConfig['strangers'];
};

async function askSettings(
  asker: Asker,
  flags: WhatsAppFlags,
  known: WhatsAppConfig,
): Promise<Asked> {
  const selfChat = flags.whatsappSelf ?? (await isOwnersNumber(asker, known));
  // To a number of one's own people write anyway: the agent asks about none of them.
  const strangers = selfChat ? 'closed' : 'silent';
  return {
    selfChat,
    ...(selfChat === known.selfChat ? {} : { strangers }),
    allowFrom: await allowed(asker, flags, known, selfChat),
    phoneNumber: await accountNumber(asker, flags, known),
  };
}

/** The allow list is read for every message; other changes restart the channel. */
function restarts(known: Asked, { selfChat, phoneNumber }: Asked): boolean {
  return known.selfChat !== selfChat || known.phoneNumber !== phoneNumber;
}

async function isOwnersNumber(asker: Asker, known: WhatsAppConfig): Promise<boolean> {
  const choices = [
    { value: 'agent', label: t`The agent’s own`, hint: t`a spare number that people write to` },
    { value: 'mine', label: t`Mine`, hint: t`the agent answers in the chat with myself` },
  ] as const;
  const before = known.selfChat ? 'mine' : 'agent';
  return (await asker.choose('Whose number is this?', choices, before)) === 'mine';
}

async function allowed(
  asker: Asker,
  flags: WhatsAppFlags,
  known: WhatsAppConfig,
  selfChat: boolean,
): Promise<readonly string[]> {
  if (flags.whatsappAllow !== undefined) return flags.whatsappAllow;
  if (!asker.interactive) return known.allowFrom;
  const nobody = selfChat ? t`only you` : t`only people you pair`;
  const answer = await asker.text({
    message: t`Which numbers may write to the agent? With +, separated by commas; empty: ${nobody}`,
    flag: '--whatsapp-allow',
    optional: true,
    initial: known.allowFrom.join(', '),
    check: (text) =>
      numberEntries(text)
        .map(strangeEntry)
        .find((problem) => problem !== undefined),
  });
  return numberEntries(answer).map(normaliseAllowed);
}

function strangeEntry(entry: string): string | undefined {
  return isAllowEntry(entry) ? undefined : strangePhone(entry);
}

const strangePhone = (text: string) =>
  t`"${text}" is not a phone number. Write it with the country code, e.g. +491511234567.`;

async function accountNumber(
  asker: Asker,
  flags: WhatsAppFlags,
  known: WhatsAppConfig,
): Promise<string> {
  if (flags.whatsappPhone !== undefined) return flags.whatsappPhone;
  if (!asker.interactive) return known.phoneNumber;
  const answer = await asker.text({
    message: t`Number of the account, to link it by a code; empty: QR code only`,
    flag: '--whatsapp-phone',
    optional: true,
    initial: known.phoneNumber === '' ? '' : `+${known.phoneNumber}`,
    check: (text) => (phoneDigits(text) === undefined ? strangePhone(text) : undefined),
  });
  return answer === '' ? '' : (phoneDigits(answer) ?? '');
}

async function pairOwner(
  host: SetupHost,
  asker: Asker,
  account: string,
  { pairWait }: WhatsAppFlags,
): Promise<void> {
  const number = /\d{8,15}/.exec(account)?.[0];
  if (number === undefined) return;
  await offerPairing(host, asker, {
    channel: CHANNEL,
    request: t`Open this link on your own phone and send the prepared message. The first person who does becomes the owner:`,
    sign: t`the message`,
    link: (code) => `https://wa.me/${number}?text=/start%20${code}`,
    ...(pairWait === undefined ? {} : { waitSecs: pairWait }),
  });
}

function prefixed(asked: Asked): Settings {
  const entries = Object.entries({ enabled: true, ...asked });
  return Object.fromEntries(entries.map(([key, value]) => [`channels.${CHANNEL}.${key}`, value]));
}
