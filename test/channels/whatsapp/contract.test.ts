import { afterAll } from 'vitest';
import { quietConsole } from '../../../src/channels/whatsapp/transport.ts';
import { channelContractOnBoth } from '../../contract/channel-engines.ts';
import { trustedWhatsAppServer } from '../../support/whatsapp-server/trusted.ts';
import { startLiveRig } from './live-rig.ts';
import { UNPACED } from './outbox-rig.ts';
import { filesSeenBy } from './seen-files.ts';

const server = await trustedWhatsAppServer();
const quiet = quietConsole();

afterAll(() => quiet[Symbol.dispose]());

/** WhatsApp's marks, as far as the contract's texts have any. */
const withoutMarks = (text: string) => text.replaceAll('*', '');

channelContractOnBoth('whatsapp', async (state) => {
  const input = { allowFrom: ['*'], streaming: true, pacing: UNPACED };
  const rig = await startLiveRig(server, input, { wrap: (own) => state ?? own });
  const anna = await server.contact(rig.phone, { name: 'Anna' });
  await anna.writes('a first word');
  const chat = await rig.host.until(({ entries }) => entries[0]?.message.chat);
  return {
    channel: rig.channel,
    host: rig.host,
    chat,
    personWrites: async (text) => void (await anna.writes(text)),
    personSees: () =>
      anna.seen.filter(({ revoked }) => !revoked).map(({ text }) => withoutMarks(text)),
    personSeesFiles: () => filesSeenBy(anna),
    stop: () => rig.stop(),
    refuseNextSend: () =>
      server.fault({
        direction: 'up',
        stanza: 'message',
        effect: { kind: 'nack', code: 403 },
      }),
    [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose](),
  };
});
