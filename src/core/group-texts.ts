// What the owner is told about groups.

import { headOf } from './cut.ts';
import type { ChannelName } from './ids.ts';
import type { InboundMessage } from './message.ts';

/** How a group is opened to the agent. */
export function howToList(channel: ChannelName, group: string): string {
  return `To let me speak there add "${group}" to \`channels.${channel}.groups\`.`;
}

export function unlistedGroupText({ chat, group }: InboundMessage): string {
  const name = group?.title === undefined ? '' : ` (${plain(group.title)})`;
  return (
    `I was called in a group that is not listed${name}, and said nothing there. ` +
    howToList(chat.channel, chat.chat)
  );
}

const MAX_TITLE_CHARS = 60;

/** A title is written by strangers: no Markdown, no lines. */
export function plain(title: string): string {
  return headOf(title.replace(/[\p{C}\p{Z}`*_~[\]()<>#|\\]+/gu, ' '), MAX_TITLE_CHARS).trim();
}
