// Reads one mail as the gateway does, with its first file into a media store, and tells how much memory
// that took at its highest.

import { createEmailChannel } from '../../src/channels/email/email.ts';
import { configSchema } from '../../src/kernel/config/config.ts';
import { openMediaFiles } from '../../src/kernel/media/files.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import type { BigMailReading } from './big-mail.ts';
import { createMemoryHost } from './memory-host.ts';

const WAIT_MS = 60_000;
const { IMAP_PORT, MEDIA_FOLDER = '', PUBLIC_KEY = '' } = process.env;

await import('../../src/channels/email/mail-session.ts');
const host = createMemoryHost(systemClock);
host.storedCursor = '7:0:0';
const media = await openMediaFiles({
  folder: MEDIA_FOLDER,
  clock: systemClock,
  maxBytes: () => Number.MAX_SAFE_INTEGER,
  needed: async () => new Set(),
});
const channel = createEmailChannel(
  {
    ...configSchema.parse({}).channels.email,
    imapHost: '127.0.0.1',
    imapPort: Number(IMAP_PORT),
    imapSecurity: 'none',
    smtpHost: '127.0.0.1',
    smtpSecurity: 'none',
    username: 'agent@nanobot.test',
    password: 'secret',
  },
  { lookup: async () => [[`v=DKIM1; k=rsa; p=${PUBLIC_KEY}`]] },
);
const controller = new AbortController();
const before = process.resourceUsage().maxRSS;
const ended = channel.run(host, controller.signal);
const entry = await host.until(() => host.entries[0], WAIT_MS);
const { message } = entry;
const content = message.attachments?.[0]?.content;
const ref = content?.kind === 'remote' ? content.ref : undefined;
const file = ref && channel.attachments?.fetch(ref, AbortSignal.timeout(WAIT_MS));
const stored = file ? await media.put(file, { maxBytes: Number.MAX_SAFE_INTEGER }) : undefined;
const grownMb = (process.resourceUsage().maxRSS - before) / 1024;
const reading: BigMailReading = {
  text: message.text,
  proof: message.sender.kind === 'person' ? message.sender.verified : undefined,
  media: stored?.id,
  grownMb,
};
process.send?.(reading);
controller.abort();
await ended;
process.disconnect();
