import { channelContractOnBoth } from '../../contract/channel-engines.ts';
import type { SeenFile } from '../../contract/channel-files.ts';
import type { LarkChat, LarkServer } from '../../support/lark-server/contract.ts';
import { startRig, textsSeen } from './rig.ts';

/** A caption follows its file. */
function filesSeen(lark: LarkServer, chat: LarkChat): readonly SeenFile[] {
  const all = lark.seen(chat);
  return all.flatMap((message, index) => {
    const file = lark.fileOf(message);
    const next = all[index + 1];
    const caption = next?.type === 'interactive' ? lark.textOf(next) : '';
    return file === undefined ? [] : [{ ...file, caption }];
  });
}

channelContractOnBoth('lark', async (state) => {
  const rig = await startRig({}, undefined, state);
  const anna = rig.lark.person('Anna');
  const direct = rig.lark.direct(anna);
  rig.start();
  rig.lark.say(anna, 'a first word');
  const chat = await rig.host.until(({ entries }) => entries[0]?.message.chat);
  return {
    channel: rig.channel,
    host: rig.host,
    chat,
    personWrites: (text) => void rig.lark.say(anna, text),
    personSees: () => textsSeen(rig.lark, direct),
    personSeesFiles: () => filesSeen(rig.lark, direct),
    personPresses: async (label) => void (await rig.lark.press(anna, direct, label)),
    stop: () => rig.stop(),
    passTime: async () => rig.lark.redeliver(),
    refuseNextSend: () =>
      rig.lark.fault({
        method: 'POST',
        path: /^im\/v1\/messages/,
        effect: { kind: 'error', status: 400, code: 230013 },
      }),
    [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose](),
  };
});
