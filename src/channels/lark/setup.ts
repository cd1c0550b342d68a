// Onboarding of Lark: app id and secret, tested by asking Lark for its bot, and a pairing text
// whose first sender becomes the owner.

import { type Asker, currentConfig, type SetupHost, save } from '../../features/setup/asker.ts';
import { offerPairing } from '../../features/setup/pairing.ts';
import { t } from '../../lib/texts.ts';
import { type LarkCredentials, type ProvenLarkBot, proveLark } from '../channel-setup.ts';

const PROOF_TIMEOUT_MS = 20_000;
const SECRET_VARIABLE = 'LARK_APP_SECRET';

export type LarkFlags = {
  /** False for --no-lark. */
  readonly lark?: boolean;
  readonly larkAppId?: string;
  readonly larkAppSecret?: string;
  /** `feishu`, `lark` or an address. */
  readonly larkDomain?: string;
  /** Seconds to wait for the owner's first message. */
  readonly pairWait?: number;
};

const HOW_TO =
  t`Lark: docs/channels/lark.md shows in five steps how to create an app with a bot. Its id and secret ` +
  t`are under "Credentials & Basic Info" in the developer console.`;

type Credentials = Omit<LarkCredentials, 'proxy'>;

export async function setUpLark(
  host: SetupHost,
  asker: Asker,
  flags: LarkFlags,
  isRetry = false,
): Promise<string | undefined> {
  if (flags.lark === false) return undefined;
  const { lark: known } = (await currentConfig(host)).channels;
  const isWanted = isRetry || flags.lark === true || flags.larkAppId !== undefined;
  if (!isWanted && !(await asker.confirm(t`Connect Lark (Feishu)?`, false))) return undefined;
  const appId = flags.larkAppId ?? known.appId;
  const appSecret =
    flags.larkAppSecret ??
    host.env[SECRET_VARIABLE] ??
    (appId === known.appId ? known.appSecret : '');
  const domain = flags.larkDomain ?? known.domain;
  const given = isRetry ? { appId: '', appSecret: '', domain } : { appId, appSecret, domain };
  const proved = await proveAndSave(host, asker, await completed(asker, given));
  await offerPairing(host, asker, {
    channel: 'lark',
    request:
      t`In Lark, search for the bot "${proved.name}" and send it this line. ` +
      t`The first person who does becomes the owner:`,
    sign: t`the message`,
    link: (code) => `/start ${code}`,
    ...(flags.pairWait === undefined ? {} : { waitSecs: flags.pairWait }),
  });
  return t`Lark ${proved.name}`;
}

async function completed(asker: Asker, { appId, appSecret, domain }: Credentials) {
  if (appId === '' || appSecret === '') asker.say(HOW_TO);
  const id = appId === '' ? await asker.text({ message: t`App id`, flag: '--lark-app-id' }) : appId;
  const secret =
    appSecret === ''
      ? await asker.secret({ message: t`App secret`, flag: '--lark-app-secret' })
      : appSecret;
  return { appId: id.trim(), appSecret: secret.trim(), domain };
}

async function proveAndSave(
  host: SetupHost,
  asker: Asker,
  credentials: Credentials,
): Promise<ProvenLarkBot> {
  const { lark: known } = (await currentConfig(host)).channels;
  const signal = AbortSignal.timeout(PROOF_TIMEOUT_MS);
  const bot = await asker.during(
    t`Checking the app with Lark`,
    () => proveLark({ ...credentials, proxy: known.proxy }, signal),
    (found) => t`Lark accepted it: bot ${found.name}.`,
  );
  const { appId, appSecret, domain } = credentials;
  const isKept = appSecret === known.appSecret;
  await save(host, {
    'channels.lark.enabled': true,
    'channels.lark.appId': appId,
    'channels.lark.domain': domain,
    // A configured value may be a reference to the environment, and stays.
    ...(isKept ? {} : { 'channels.lark.appSecret': secretText(host, appSecret) }),
  });
  return bot;
}

/** A secret from the environment is saved as a reference, not copied. */
function secretText({ env }: SetupHost, secret: string): string {
  return env[SECRET_VARIABLE] === secret ? `\${${SECRET_VARIABLE}}` : secret;
}
