// Encodes mDNS service queries and parses the responses (RFC 6762, RFC 6763). Only the port of a
// response is used: the address is that of the sender, so a response cannot point at another
// machine.

const HEADER = 12;
const PTR = 12;
const SRV = 33;
/** Class IN with the QU bit: asks for a unicast response (RFC 6762, section 5.4). */
const IN_UNICAST = 0x80_01;
const RESPONSE = 0x80_00;
const POINTER = 0xc0;
const MAX_JUMPS = 16;
const MAX_RECORDS = 200;
const MAX_PORTS = 4;
/** Bytes before the port in an SRV record: priority and weight. */
const SRV_PORT = 4;

/** `services`: as `_exo._tcp`, in ASCII. */
export function serviceQuestion(services: readonly string[]): Uint8Array {
  const ascii = (text: string) => [...text].map((sign) => sign.charCodeAt(0));
  const questions = services.flatMap((service) => [
    ...`${service}.local`.split('.').flatMap((label) => [label.length, ...ascii(label)]),
    ...[0, 0, PTR, IN_UNICAST >> 8, IN_UNICAST & 0xff],
  ]);
  return Uint8Array.from([0, 0, 0, 0, 0, services.length, 0, 0, 0, 0, 0, 0, ...questions]);
}

/**
 * Undefined where the packet does not mention the services; empty where it gives no port. Accepts
 * any bytes.
 */
export function announcedPorts(
  packet: Uint8Array,
  services: readonly string[],
): readonly number[] | undefined {
  const records = recordsIn(packet);
  const names = services.map((service) => `${service}.local`.toLowerCase());
  const isMeant = records.some(({ type, name }) =>
    names.some((each) => (type === PTR ? name === each : name.endsWith(`.${each}`))),
  );
  if (!isMeant) return undefined;
  const ports = records.flatMap(({ type, name, port }) =>
    type === SRV && port > 0 && names.some((each) => name.endsWith(`.${each}`)) ? [port] : [],
  );
  return [...new Set(ports)].slice(0, MAX_PORTS);
}

type ServiceRecord = { readonly type: number; readonly name: string; readonly port: number };

/** The records of a response; parsing stops at a truncated or invalid record. */
function recordsIn(packet: Uint8Array): readonly ServiceRecord[] {
  const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
  if (packet.length < HEADER || (view.getUint16(2) & RESPONSE) === 0) return [];
  const count = view.getUint16(6) + view.getUint16(8) + view.getUint16(10);
  let at = HEADER;
  for (let left = view.getUint16(4); left > 0; left -= 1) {
    const name = nameAt(packet, at);
    if (name === undefined) return [];
    at = name.end + 4;
  }
  const found: ServiceRecord[] = [];
  for (let left = Math.min(count, MAX_RECORDS); left > 0; left -= 1) {
    const name = nameAt(packet, at);
    if (name === undefined || name.end + 10 > packet.length) return found;
    const type = view.getUint16(name.end);
    const data = name.end + 10;
    const length = view.getUint16(name.end + 8);
    at = data + length;
    if (at > packet.length) return found;
    const port = type === SRV && length > SRV_PORT + 1 ? view.getUint16(data + SRV_PORT) : 0;
    if (type === PTR || type === SRV) found.push({ type, name: name.text, port });
  }
  return found;
}

/** `end`: the offset behind the name. */
function nameAt(
  packet: Uint8Array,
  start: number,
): { readonly text: string; readonly end: number } | undefined {
  const labels: string[] = [];
  let at = start;
  let end: number | undefined;
  for (let jumps = 0; ; ) {
    const length = packet[at];
    if (length === undefined || labels.length > 32) return undefined;
    if (length === 0) return { text: labels.join('.').toLowerCase(), end: end ?? at + 1 };
    if ((length & POINTER) === POINTER) {
      const low = packet[at + 1];
      jumps += 1;
      if (low === undefined || jumps > MAX_JUMPS) return undefined;
      end ??= at + 2;
      at = ((length & ~POINTER) << 8) | low;
      continue;
    }
    const label = packet.slice(at + 1, at + 1 + length);
    if ((length & POINTER) !== 0 || label.length < length) return undefined;
    labels.push(new TextDecoder().decode(label));
    at += 1 + length;
  }
}
