import type { LocalEvent } from '../../../src/channels/local-channel.ts';
import { BusFullError } from '../../../src/kernel/message/errors.ts';
import { renderPlain } from '../../../src/lib/markup/markup.ts';
import { channelContractOnBoth } from '../../contract/channel-engines.ts';
import { createMemoryHost } from '../../support/memory-host.ts';
import { createMovableClock } from '../../support/movable-clock.ts';
import { chatRef, openLocalChannel, readEvents } from './local-rig.ts';

/** It changes what was said before, and says nothing itself. */
const isAboutAnother = ({ takesAway, closes }: Extract<LocalEvent, { readonly type: 'said' }>) =>
  takesAway !== undefined || closes !== undefined;

channelContractOnBoth('a door', async (state) => {
  const rig = await openLocalChannel(createMemoryHost(createMovableClock(), state));
  const { door } = rig;
  const waiting: string[] = [];
  let written = 0;

  /** As the page does: what is refused is offered again later. */
  async function offer(text: string) {
    const message = { chat: 'a', clientId: `c${written++}`, text };
    await door.submit(message).catch((error) => {
      if (!(error instanceof BusFullError)) throw error;
      waiting.push(text);
    });
  }

  async function seen() {
    const [chat] = await door.chats(1);
    const events = door.events('a', 0, new AbortController().signal);
    const isLast = (event: LocalEvent) => event.type === 'said' && event.seq === chat?.lastSeq;
    return readEvents(events, isLast);
  }

  await offer('a first word');
  return {
    channel: door,
    host: rig.host,
    chat: chatRef('a'),
    personWrites: offer,
    async personSees() {
      return (await seen()).flatMap((event) =>
        event.type === 'said' && event.from === 'agent' && !isAboutAnother(event)
          ? [renderPlain(event.text)]
          : [],
      );
    },
    async personSeesFiles() {
      const files = (await seen()).flatMap((event) =>
        event.type === 'said' && event.from === 'agent'
          ? (event.files ?? []).map((file, index) => ({
              ...file,
              caption: index === 0 ? (renderPlain(event.text).split('\n\n').at(-1) ?? '') : '',
            }))
          : [],
      );
      return Promise.all(
        files.map(async ({ name, media, caption }) => ({
          name,
          caption,
          content: Buffer.from((await door.files?.read(media)) ?? []),
        })),
      );
    },
    async personPresses(label) {
      const all = await seen();
      const said = all.find((event) => event.type === 'said' && event.choices !== undefined);
      const choices = said?.type === 'said' ? (said.choices ?? []) : [];
      const press = choices.find((choice) => choice.label === label)?.token ?? '';
      await door.submit({ chat: 'a', clientId: 'pressed', text: label, press });
    },
    stop: rig.stopIntake,
    async passTime() {
      for (const text of waiting.splice(0)) await offer(text);
    },
    [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose](),
  };
});
