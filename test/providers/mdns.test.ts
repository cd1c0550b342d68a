// The search by mDNS against machines that answer as they should, lie, or send rubbish. All on loopback.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { searchByMdns } from '../../src/features/cluster/cluster.ts';
import { announcedPorts, serviceQuestion } from '../../src/features/cluster/rules/mdns.ts';
import { configSchema } from '../../src/kernel/config/config.ts';

const EXO = ['_exo._tcp'];
const SERVICE = '_exo._tcp.local';
const [A, PTR, SRV] = [1, 12, 33];

const name = (text: string) =>
  Buffer.concat([
    ...text.split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
    Buffer.from([0]),
  ]);
const u16 = (...values: readonly number[]) =>
  Buffer.concat(values.map((value) => Buffer.from([value >> 8, value & 0xff])));

type Said = { readonly owner: Buffer; readonly type: number; readonly data: Buffer };
const record = ({ owner, type, data }: Said) =>
  Buffer.concat([owner, u16(type, 0x8001, 0, 120, data.length), data]);
const packet = (records: readonly Said[], { flags = 0x8400, questions = 0 } = {}) =>
  Buffer.concat([
    u16(0, flags, questions, records.length, 0, 0),
    ...(questions === 0 ? [] : [name(SERVICE), u16(PTR, 1)]),
    ...records.map(record),
  ]);
const srv = (owner: Buffer, port: number): Said => ({
  ...{ owner, type: SRV, data: Buffer.concat([u16(0, 0, port), name('studio.local')]) },
});
const ptr: Said = { owner: name(SERVICE), type: PTR, data: name(`node.${SERVICE}`) };
const elsewhere: Said = { owner: name('studio.local'), type: A, data: Buffer.from([8, 8, 8, 8]) };

describe('an answer', () => {
  it('tells the ports of the services that were asked for, and of no other', () => {
    const own = srv(name(`Node 1.${SERVICE}`), 52_415);
    expect(announcedPorts(packet([ptr, own, elsewhere]), EXO)).toEqual([52_415]);
    expect(announcedPorts(packet([ptr, own], { questions: 1 }), EXO)).toEqual([52_415]);
    expect(announcedPorts(packet([ptr]), EXO)).toEqual([]);
    expect(announcedPorts(packet([srv(name('printer._ipp._tcp.local'), 631)]), EXO)).toBe(
      undefined,
    );
    expect(announcedPorts(packet([own], { flags: 0 }), EXO)).toBe(undefined);
    const many = [1, 2, 3, 4, 5, 6].map((port) => srv(name(`n.${SERVICE}`), port));
    expect(announcedPorts(packet([...many, ...many]), EXO)).toHaveLength(4);
  });

  it('is read with names that point back, and not round for ever', () => {
    const pointing = Buffer.concat([name('node').subarray(0, 5), Buffer.from([0xc0, 12])]);
    expect(announcedPorts(packet([ptr, srv(pointing, 8080)]), EXO)).toEqual([8080]);
    const itself = packet([srv(Buffer.from([0xc0, 12]), 8080)]);
    expect(announcedPorts(itself, EXO)).toBe(undefined);
  });

  it('is any bytes', () => {
    const good = packet([ptr, srv(name(`node.${SERVICE}`), 52_415), elsewhere]);
    const bytes = fc.uint8Array({ maxLength: 300 });
    const broken = fc.tuple(fc.nat(good.length - 1), fc.nat(255)).map(([at, value]) => {
      const changed = Uint8Array.from(good);
      changed[at] = value;
      return changed.subarray(0, at % 3 === 0 ? at : good.length);
    });
    fc.assert(
      fc.property(fc.oneof(bytes, broken), (some) => {
        for (const port of announcedPorts(some, EXO) ?? []) expect(port).toBeGreaterThan(0);
      }),
      { numRuns: 300 },
    );
  });
});

it('asks once, takes an answer for the machine that sent it, and lets be what is no answer', async () => {
  const machine = createSocket('udp4').bind(0, '127.0.0.1');
  await once(machine, 'listening');
  const asked: Buffer[] = [];
  machine.on('message', (question, { port, address }) => {
    asked.push(question);
    const answers = [
      Buffer.from('rubbish'),
      packet([srv(name('printer._ipp._tcp.local'), 631)]),
      packet([ptr, srv(name(`node.${SERVICE}`), 52_415), elsewhere]),
      packet([ptr]),
    ];
    for (const answer of answers) machine.send(answer, port, address);
  });
  const over = new AbortController();
  const places: string[] = [];
  await searchByMdns(
    {
      ...{ services: EXO, ports: [1234], to: machine.address() },
      found(place) {
        places.push(place);
        if (place.endsWith(':1234')) over.abort();
      },
    },
    over.signal,
  );
  machine.close();
  expect(places).toEqual(['127.0.0.1:52415', '127.0.0.1:1234']);
  expect(asked).toEqual([Buffer.from(serviceQuestion(EXO))]);
  expect(asked[0]?.includes(name(SERVICE))).toBe(true);
});

it('is off unless services are named, and takes names of services only', () => {
  const parsed = (mdns?: readonly string[]) =>
    configSchema.safeParse({ cluster: { discovery: { mdns } } });
  expect(parsed().data?.cluster.discovery).toMatchObject({ enabled: false, mdns: [] });
  expect(parsed(EXO).success).toBe(true);
  for (const wrong of ['exo', '_exo._udp', '_exo._tcp.local', '_é._tcp', `_${'a'.repeat(16)}._tcp`])
    expect(parsed([wrong]).success, wrong).toBe(false);
});
