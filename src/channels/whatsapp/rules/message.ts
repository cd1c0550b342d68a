// The shape of a WhatsApp message as far as it is read: a structural part of the vendor's own type,
// in which every field may be missing or null.

type Maybe<T> = T | null | undefined;
type Part<T> = Maybe<{ readonly [Field in keyof T]?: Maybe<T[Field]> }>;

/** What a message says about others: the one it answers, people it names, that it was passed on. */
export type WhatsAppContext = {
  readonly stanzaId?: Maybe<string>;
  readonly participant?: Maybe<string>;
  readonly quotedMessage?: Maybe<WhatsAppContent>;
  readonly mentionedJid?: Maybe<readonly string[]>;
  readonly isForwarded?: Maybe<boolean>;
  readonly forwardingScore?: Maybe<number>;
  readonly forwardedNewsletterMessageInfo?: Maybe<object>;
  readonly businessMessageForwardInfo?: Maybe<object>;
  readonly forwardedAiBotMessageInfo?: Maybe<object>;
};

/** A file on the media host, with what its sender says of it. */
export type WhatsAppFile = {
  readonly caption?: Maybe<string>;
  readonly mediaKey?: Maybe<Uint8Array>;
  readonly directPath?: Maybe<string>;
  readonly url?: Maybe<string>;
  readonly mimetype?: Maybe<string>;
  readonly fileLength?: Maybe<number | { toNumber(): number }>;
  readonly fileName?: Maybe<string>;
  readonly title?: Maybe<string>;
  readonly seconds?: Maybe<number>;
  /** Spoken into the phone. */
  readonly ptt?: Maybe<boolean>;
  readonly gifPlayback?: Maybe<boolean>;
};

type Place = {
  readonly degreesLatitude: number;
  readonly degreesLongitude: number;
  readonly name: string;
  readonly address: string;
  readonly comment: string;
};
type Contact = { readonly displayName: string; readonly vcard: string };
type Poll = {
  readonly name: string;
  readonly options: readonly { readonly optionName?: Maybe<string> }[];
};

type Key = { readonly id?: Maybe<string> };

/** Kinds that are words in themselves, or are described by more than their name. */
export type WhatsAppContent = {
  readonly conversation?: Maybe<string>;
  readonly extendedTextMessage?: Part<{ readonly text: string }>;
  /** A picture of an album names the message that announced the album. */
  readonly messageContextInfo?: Part<{
    readonly messageAssociation: {
      readonly parentMessageKey?: Maybe<{ readonly id?: Maybe<string> }>;
    };
  }>;
  readonly imageMessage?: Maybe<WhatsAppFile>;
  readonly videoMessage?: Maybe<WhatsAppFile>;
  readonly ptvMessage?: Maybe<WhatsAppFile>;
  readonly audioMessage?: Maybe<WhatsAppFile>;
  readonly documentMessage?: Maybe<WhatsAppFile>;
  readonly stickerMessage?: Maybe<WhatsAppFile>;
  readonly locationMessage?: Part<Place>;
  readonly liveLocationMessage?: Part<
    Pick<Place, 'degreesLatitude' | 'degreesLongitude'> & { readonly caption: string }
  >;
  readonly contactMessage?: Part<Contact>;
  readonly contactsArrayMessage?: Part<{
    readonly contacts: readonly NonNullable<Part<Contact>>[];
  }>;
  readonly pollCreationMessage?: Part<Poll>;
  readonly pollCreationMessageV2?: Part<Poll>;
  readonly pollCreationMessageV3?: Part<Poll>;
  readonly pollCreationMessageV5?: Part<Poll>;
  readonly eventMessage?: Part<{ readonly name: string; readonly description: string }>;
  readonly groupInviteMessage?: Part<{ readonly groupName: string; readonly caption: string }>;
  readonly buttonsResponseMessage?: Part<{
    readonly selectedDisplayText: string;
    readonly selectedButtonId: string;
  }>;
  readonly templateButtonReplyMessage?: Part<{
    readonly selectedDisplayText: string;
    readonly selectedId: string;
  }>;
  readonly listResponseMessage?: Part<{ readonly title: string; readonly description: string }>;
  readonly interactiveResponseMessage?: Part<{
    readonly body: { readonly text?: Maybe<string> };
  }>;
  readonly buttonsMessage?: Part<{ readonly contentText: string; readonly footerText: string }>;
  readonly listMessage?: Part<{ readonly title: string; readonly description: string }>;
  readonly interactiveMessage?: Part<{ readonly body: { readonly text?: Maybe<string> } }>;
  readonly templateMessage?: Part<{
    readonly hydratedTemplate: { readonly hydratedContentText?: Maybe<string> };
  }>;
  /** An edit or a deletion names the message; the other protocol messages say nothing to people. */
  readonly protocolMessage?: Part<{
    readonly type: number;
    readonly key: Key;
    readonly editedMessage: WhatsAppContent;
  }>;
  readonly reactionMessage?: Part<{ readonly key: Key; readonly text: string }>;
  readonly editedMessage?: Part<{ readonly message: WhatsAppContent }>;
  readonly botForwardedMessage?: Part<{ readonly message: WhatsAppContent }>;
};
