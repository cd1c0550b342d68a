// Files as the people of the WhatsApp server have them: fetched and decrypted by Baileys' own code.

import { readFile } from 'node:fs/promises';
import {
  downloadContentFromMessage,
  type MediaType,
  prepareWAMessageMedia,
  type proto,
} from '@whiskeysockets/baileys';
import type { SeenFile } from '../../contract/channel-files.ts';
import type { Contact, WhatsAppServer } from '../../support/whatsapp-server/contract.ts';

const TYPES: Readonly<Record<string, MediaType>> = {
  imageMessage: 'image',
  videoMessage: 'video',
  ptvMessage: 'video',
  audioMessage: 'audio',
  documentMessage: 'document',
  stickerMessage: 'sticker',
};

type Media = {
  mediaKey?: Uint8Array;
  directPath?: string;
  url?: string;
  caption?: string;
  fileName?: string;
};

export type SeenWhatsAppFile = SeenFile & { readonly kind: string; readonly media: object };

export async function filesSeenBy(contact: Contact): Promise<readonly SeenWhatsAppFile[]> {
  const files = contact.seen.map(async ({ message }) => fileIn(message));
  return (await Promise.all(files)).filter((file) => file !== undefined);
}

async function fileIn(message: proto.IMessage): Promise<SeenWhatsAppFile | undefined> {
  const inner = message.documentWithCaptionMessage?.message ?? message;
  for (const [kind, type] of Object.entries(TYPES)) {
    const media = inner[kind as keyof proto.IMessage] as Media | null | undefined;
    if (media === null || media === undefined) continue;
    const stream = await downloadContentFromMessage(media, type);
    const content = Buffer.concat(await stream.toArray());
    return { kind, media, content, name: media.fileName ?? '', caption: media.caption ?? '' };
  }
  return undefined;
}

/** A message with a file as a phone makes it, its ciphertext on the server's media host. */
export function fileMessage(
  server: WhatsAppServer,
  content: Parameters<typeof prepareWAMessageMedia>[0],
): Promise<proto.IMessage> {
  return prepareWAMessageMedia(content, {
    upload: async (file) =>
      server.keep(
        typeof file === 'string'
          ? await readFile(file)
          : Buffer.concat(
              await (
                file as unknown as NodeJS.ReadableStream & { toArray(): Promise<Buffer[]> }
              ).toArray(),
            ),
      ),
  });
}
