import { proto } from '@whiskeysockets/baileys';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readWhatsApp } from '../../../src/channels/whatsapp/content.ts';

const hello: proto.IMessage = { conversation: 'hello' };
const textOf = (message: proto.IMessage) => readWhatsApp(message)?.text;

/** As it comes off the wire. */
function onTheWire(message: proto.IMessage): proto.Message {
  return proto.Message.decode(proto.Message.encode(proto.Message.fromObject(message)).finish());
}

const forwarded = (contextInfo: proto.IContextInfo): proto.IMessage => ({
  extendedTextMessage: { text: 'news', contextInfo },
});

describe('the text of a WhatsApp message', () => {
  it.each<[string, proto.IMessage, string]>([
    ['plain', { conversation: 'hi' }, 'hi'],
    [
      'with a link',
      { extendedTextMessage: { text: 'see https://a.example' } },
      'see https://a.example',
    ],
    ['photo', { imageMessage: {} }, ''],
    ['photo with caption', { imageMessage: { caption: 'look' } }, 'look'],
    [
      'place',
      {
        locationMessage: {
          degreesLatitude: 52.5,
          degreesLongitude: 13.4,
          name: 'Home',
          address: 'Street 1',
        },
      },
      '[place: Home, Street 1 (52.5, 13.4)]',
    ],
    [
      'location',
      { locationMessage: { degreesLatitude: 1, degreesLongitude: 2 } },
      '[location: 1, 2]',
    ],
    [
      'live location',
      { liveLocationMessage: { degreesLatitude: 1, degreesLongitude: 2, caption: 'on my way' } },
      '[live location: 1, 2]\non my way',
    ],
    [
      'contact',
      {
        contactMessage: {
          displayName: 'Ann\nB',
          vcard: 'BEGIN:VCARD\nTEL;type=CELL;waid=4915:+49 15\nitem1.TEL:+1 2\nEND:VCARD',
        },
      },
      '[forwarded]\n[contact: Ann B, +49 15, +1 2]',
    ],
    [
      'contacts',
      { contactsArrayMessage: { contacts: [{ displayName: 'A' }, { displayName: 'B' }] } },
      '[forwarded]\n[contact: A]\n[contact: B]',
    ],
    [
      'poll',
      {
        pollCreationMessageV3: {
          name: 'When?',
          options: [{ optionName: 'now' }, { optionName: 'later' }],
        },
      },
      '[poll: When?; options: now / later]',
    ],
    ['event', { eventMessage: { name: 'Party', description: 'at 8' } }, '[event: Party]\nat 8'],
    [
      'event with its time and place',
      { eventMessage: { name: 'Party', startTime: 1_800_000_000, location: { name: 'Home' } } },
      '[event: Party, 2027-01-15T08:00:00.000Z, Home]',
    ],
    [
      'invitation',
      { groupInviteMessage: { groupName: 'Us', caption: 'join' } },
      '[forwarded]\n[invitation to the group "Us"]\njoin',
    ],
    [
      'button',
      { buttonsResponseMessage: { selectedDisplayText: 'Yes', selectedButtonId: 'y' } },
      '[forwarded]\nYes',
    ],
    ['button without words', { templateButtonReplyMessage: { selectedId: 'y' } }, '[forwarded]\ny'],
    [
      'list',
      { listResponseMessage: { title: 'Tea', description: 'black' } },
      '[forwarded]\nTea\nblack',
    ],
    ['flow', { interactiveResponseMessage: { body: { text: 'booked' } } }, '[forwarded]\nbooked'],
    [
      'business text',
      { buttonsMessage: { contentText: 'Choose', footerText: 'Shop' } },
      '[forwarded]\nChoose\nShop',
    ],
    [
      'template',
      { templateMessage: { hydratedTemplate: { hydratedContentText: 'Your parcel' } } },
      '[forwarded]\nYour parcel',
    ],
    [
      'something new',
      { stickerPackMessage: { name: 'cats' } },
      '[sent something else (sticker pack), which cannot be opened here yet]',
    ],
    [
      'an empty list',
      { contactsArrayMessage: { contacts: [] } },
      '[forwarded]\n[sent something else (contacts array), which cannot be opened here yet]',
    ],
    ['a kind of later', {}, '[sent something of an unknown kind]'],
  ])('%s', (_name, message, text) => {
    expect(textOf(onTheWire(message))).toBe(text);
  });

  it.each<[string, proto.IMessage]>([
    ['ephemeral', { ephemeralMessage: { message: { conversation: 'hello' } } }],
    ['view once', { viewOnceMessageV2Extension: { message: { conversation: 'hello' } } }],
    [
      'document with caption',
      { documentWithCaptionMessage: { message: { conversation: 'hello' } } },
    ],
    ['sent by another device', { deviceSentMessage: { message: { conversation: 'hello' } } }],
    ['kept for groups', { groupMentionedMessage: { message: { conversation: 'hello' } } }],
    [
      'nested',
      {
        ephemeralMessage: { message: { viewOnceMessage: { message: { conversation: 'hello' } } } },
      },
    ],
    ['with a sign beside it', { messageContextInfo: {}, conversation: 'hello' }],
  ])('is found inside a container: %s', (_name, message) => {
    expect(readWhatsApp(onTheWire(message))).toEqual({ text: 'hello', isEdit: false });
  });

  it.each<[string, proto.IMessage]>([
    ['container', { editedMessage: { message: { conversation: 'hello' } } }],
    [
      'protocol message',
      { protocolMessage: { type: 14, editedMessage: { conversation: 'hello' } } },
    ],
    [
      'both',
      {
        editedMessage: {
          message: { protocolMessage: { editedMessage: { conversation: 'hello' } } },
        },
      },
    ],
  ])('is known as an edit: %s', (_name, message) => {
    expect(readWhatsApp(onTheWire(message))).toEqual({ text: 'hello', isEdit: true });
  });

  it.each<[string, proto.IMessage]>([
    ['a reaction', { reactionMessage: { text: '👍' } }],
    ['a vote', { pollUpdateMessage: {} }],
    ['a deletion', { protocolMessage: { type: 0 } }],
    ['a key', { senderKeyDistributionMessage: { groupId: '1@g.us' } }],
    ['empty text', { conversation: '' }],
  ])('%s says nothing', (_name, message) => {
    expect(readWhatsApp(onTheWire(message))).toBeUndefined();
  });

  it.each<[string, proto.IMessage, string]>([
    ['another chat', forwarded({ isForwarded: true }), '[forwarded]\nnews'],
    ['many chats', forwarded({ forwardingScore: 5 }), '[forwarded]\nnews'],
    [
      'a channel',
      forwarded({ forwardedNewsletterMessageInfo: { newsletterJid: '1@newsletter' } }),
      '[forwarded]\nnews',
    ],
    [
      'a business',
      forwarded({ businessMessageForwardInfo: { businessOwnerJid: '1@s.whatsapp.net' } }),
      '[forwarded]\nnews',
    ],
    [
      'a bot, by name',
      forwarded({ forwardedAiBotMessageInfo: { botName: 'Bot' } }),
      '[forwarded]\nnews',
    ],
    [
      'a bot, in a container',
      { botForwardedMessage: { message: { conversation: 'news' } } },
      '[forwarded]\nnews',
    ],
    [
      'a recording',
      { audioMessage: { ptt: true, contextInfo: { isForwarded: true } } },
      '[forwarded]',
    ],
    [
      'a picture, changed since',
      { editedMessage: { message: { imageMessage: { contextInfo: { isForwarded: true } } } } },
      '[forwarded]',
    ],
    ['nobody else', forwarded({ expiration: 5 }), 'news'],
  ])('shows what was passed on: from %s', (_name, message, text) => {
    expect(textOf(onTheWire(message))).toBe(text);
  });

  it('names people by the ids they have everywhere else', () => {
    const message = onTheWire({
      extendedTextMessage: {
        text: 'ask @4915112345 or @49151 or @777, mail a@4915112345.example',
        contextInfo: { mentionedJid: ['4915112345@s.whatsapp.net', '777:2@lid', 'x@y@lid'] },
      },
    });
    expect(textOf(message)).toBe(
      'ask @+4915112345 or @49151 or @777@lid, mail a@4915112345.example',
    );
  });

  it('tells what it quotes, and of whom', () => {
    const message = onTheWire({
      extendedTextMessage: {
        text: 'yes',
        contextInfo: {
          stanzaId: 'ABC',
          participant: '4915112345@s.whatsapp.net',
          quotedMessage: { ephemeralMessage: { message: { imageMessage: { caption: 'this?' } } } },
        },
      },
    });
    expect(readWhatsApp(message)).toEqual({
      text: 'yes',
      isEdit: false,
      quoted: {
        id: 'ABC',
        authorJid: '4915112345@s.whatsapp.net',
        text: '[photo]\nthis?',
      },
    });
  });

  it('stops reading what is nested without end', () => {
    const nested = Array.from({ length: 200 }).reduce<proto.IMessage>(
      (message) => ({ ephemeralMessage: { message } }) as proto.IMessage,
      hello,
    );
    expect(textOf(nested)).toBe(
      '[sent something else (ephemeral), which cannot be opened here yet]',
    );
  });

  it('keeps the words of every text, however it is packed', () => {
    const packing = fc.constantFrom('ephemeralMessage', 'viewOnceMessage', 'anythingLater');
    fc.assert(
      fc.property(
        fc.string({ minLength: 1 }),
        fc.array(packing, { maxLength: 5 }),
        (text, packs) => {
          const packed = packs.reduce<proto.IMessage>(
            (message, name) => ({ [name]: { message } }) as proto.IMessage,
            { conversation: text },
          );
          expect(textOf(packed)).toBe(text.toWellFormed());
        },
      ),
    );
  });

  it('never throws, whatever a message holds', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('conversation', 'x', 'message'), fc.anything()),
        (value) => {
          readWhatsApp({ ephemeralMessage: value } as proto.IMessage);
        },
      ),
    );
  });
});
