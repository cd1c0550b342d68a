// The step of the setup for one channel, by the channel's name.

import type { Asker, SetupHost, Step } from '../features/setup/asker.ts';
import { defined } from '../lib/json/json.ts';
import { t } from '../lib/texts.ts';
import type { CredentialFlags } from './email/setup.ts';

export type LoginFlags = {
  readonly token?: string;
  readonly phone?: string;
  readonly self?: boolean;
  readonly allow?: readonly string[];
  readonly pairWait?: number;
  readonly email?: string;
  readonly account?: string;
  readonly appId?: string;
  readonly appSecret?: string;
  readonly domain?: string;
  readonly device?: boolean;
} & CredentialFlags;

export async function channelStep(
  host: SetupHost,
  asker: Asker,
  name: string,
  flags: LoginFlags,
): Promise<readonly [title: string, step: Step]> {
  const { token, phone, self, allow, appId, appSecret, domain, account, pairWait } = flags;
  if (name === 'telegram') {
    const { setUpTelegram } = await import('./telegram/setup.ts');
    const given = { telegram: token ?? '', ...defined({ pairWait }) };
    return ['Telegram', (again) => setUpTelegram(host, asker, given, again)];
  }
  if (name === 'whatsapp') {
    const { setUpWhatsApp } = await import('./whatsapp/setup.ts');
    const said = { whatsappPhone: phone, whatsappSelf: self, whatsappAllow: allow, pairWait };
    const given = { whatsapp: true, ...defined(said) };
    return ['WhatsApp', () => setUpWhatsApp(host, asker, given)];
  }
  if (name === 'lark') {
    const { setUpLark } = await import('./lark/setup.ts');
    const said = { larkAppId: appId, larkAppSecret: appSecret, larkDomain: domain, pairWait };
    const given = { lark: true, ...defined(said) };
    return ['Lark', (again) => setUpLark(host, asker, given, again)];
  }
  const { setUpEmail } = await import('./email/setup.ts');
  const { accountId } = await import('../kernel/message/ids.ts');
  const { account: _, device, ...rest } = flags;
  const which = account === undefined ? {} : { account: accountId(account) };
  const given = {
    ...rest,
    ...which,
    ...defined({ emailDevice: device }),
    email: flags.email ?? '',
  };
  return [t`Mail`, (again) => setUpEmail(host, asker, given, again)];
}
