// Whether anybody would get a message, asked before it is sent: the library encrypts for nobody
// without a word where the server knows no devices, or where its answer did not come in time.

import {
  isJidGroup,
  jidNormalizedUser,
  USyncQuery,
  USyncUser,
  type WASocket,
} from '@whiskeysockets/baileys';
import { BACKOFF, DeliveryError, NEVER, type Remedy } from '../../kernel/message/errors.ts';
import { isSameAddress } from './rules/jid.ts';

type DeviceSource = Pick<WASocket, 'user' | 'getUSyncDevices' | 'executeUSyncQuery'>;

/** The server's code for somebody it does not know. */
const NOT_FOUND = 404;

/** @throws DeliveryError not_sent */
export async function requireRecipients(
  socket: DeviceSource,
  jid: string,
  devices: 'known' | 'fresh',
): Promise<void> {
  if (isJidGroup(jid)) return;
  if (await hasDevices(socket, jid, devices === 'known')) return;
  // Empty is also what a query answers that ran out of time: only an answer may condemn.
  const isKnown = await asked(socket, jid);
  if (isKnown === false) throw nobody('this address is not on WhatsApp', NEVER);
  throw nobody('WhatsApp does not say which devices would get the message', BACKOFF);
}

/** The own devices are asked for as well: the send needs both, and finds them remembered. */
async function hasDevices(
  socket: DeviceSource,
  jid: string,
  mayBeKnown: boolean,
): Promise<boolean> {
  const own = jid.endsWith('@lid') ? socket.user?.lid : socket.user?.id;
  const jids = own === undefined ? [jid] : [jidNormalizedUser(own), jid];
  try {
    const devices = await socket.getUSyncDevices(jids, mayBeKnown, false);
    return devices.some((device) => isSameAddress(device.jid, jid));
  } catch (error) {
    if (codeOf(error) === NOT_FOUND) return false;
    throw nobody('WhatsApp did not say which devices would get the message', BACKOFF, error);
  }
}

/** Whether the server knows devices of this address; undefined while it does not answer. */
async function asked(socket: DeviceSource, jid: string): Promise<boolean | undefined> {
  const query = new USyncQuery()
    .withContext('message')
    .withDeviceProtocol()
    .withUser(new USyncUser().withId(jid));
  try {
    const result = await socket.executeUSyncQuery(query);
    return result?.list.some(({ id, devices }) => {
      const list: unknown = Reflect.get(Object(devices), 'deviceList');
      return isSameAddress(id, jid) && Array.isArray(list) && list.length > 0;
    });
  } catch (error) {
    return codeOf(error) === NOT_FOUND ? false : undefined;
  }
}

/** The library puts the server's error code there. */
const codeOf = (error: unknown): unknown => Reflect.get(Object(error), 'data');

const nobody = (message: string, remedy: Remedy, cause?: unknown) =>
  new DeliveryError(message, {
    certainty: 'not_sent',
    remedy,
    code: 'whatsapp_no_recipient',
    cause,
  });
