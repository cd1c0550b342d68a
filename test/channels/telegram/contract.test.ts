import { channelContractOnBoth } from '../../contract/channel-engines.ts';
import { createMovableClock } from '../../support/movable-clock.ts';
import { ALICE, chatOf, seenBy, startRig } from './rig.ts';

channelContractOnBoth('telegram', async (state) => {
  const clock = createMovableClock();
  const rig = await startRig({ clock, state });
  rig.start();
  rig.api.say(ALICE, 'a first word');
  await rig.host.until((host) => host.texts().length === 1);
  // Parts of a long answer are spaced by the clock.
  const ticking = setInterval(() => void clock.advance(1000), 5);
  return {
    channel: rig.channel,
    host: rig.host,
    chat: chatOf(ALICE),
    personWrites: (text) => void rig.api.say(ALICE, text),
    personSees: () => seenBy(rig.api, ALICE),
    personSeesFiles: () =>
      rig.api
        .chat(ALICE)
        .messages.flatMap(({ file, text }) =>
          file === undefined ? [] : [{ ...file, caption: text }],
        ),
    personPresses: (label) => void rig.api.press(ALICE, ALICE, label),
    stop: () => rig.stop(),
    refuseNextSend: () => rig.api.block(ALICE),
    async [Symbol.asyncDispose]() {
      clearInterval(ticking);
      await rig[Symbol.asyncDispose]();
    },
  };
});
