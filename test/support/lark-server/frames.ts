// The frames of Lark's long connection (pbbp2): made and read by protobuf, apart from the SDK's own code.

import protobuf from 'protobufjs';

const root = protobuf.parse(
  `syntax = "proto2";
   message Header { required string key = 1; required string value = 2; }
   message Frame {
     required uint64 SeqID = 1; required uint64 LogID = 2;
     required int32 service = 3; required int32 method = 4;
     repeated Header headers = 5;
     optional string payloadEncoding = 6; optional string payloadType = 7;
     optional bytes payload = 8; optional string LogIDNew = 9;
   }`,
  { keepCase: true },
).root;
const frameType = root.lookupType('Frame');

export const CONTROL = 0;
export const DATA = 1;

export type Frame = {
  readonly service: number;
  readonly method: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Buffer;
};

export function encodeFrame({ service, method, headers, payload }: Frame): Uint8Array {
  const list = Object.entries(headers).map(([key, value]) => ({ key, value }));
  const fields = { SeqID: 1, LogID: 1, service, method, headers: list, payload };
  return frameType.encode(frameType.create(fields)).finish();
}

/** @throws where the bytes are no frame. */
export function decodeFrame(bytes: Uint8Array): Frame {
  const fields = frameType.toObject(frameType.decode(bytes), { bytes: Buffer }) as {
    service: number;
    method: number;
    headers?: { key: string; value: string }[];
    payload?: Buffer;
  };
  const pairs = (fields.headers ?? []).map(({ key, value }) => [key, value] as const);
  return {
    service: fields.service,
    method: fields.method,
    headers: Object.fromEntries(pairs),
    payload: fields.payload ?? Buffer.alloc(0),
  };
}

/** One event as the data frames it comes in. */
export function eventFrames(service: number, id: string, body: string, chunks: number): Frame[] {
  const bytes = Buffer.from(body);
  const size = Math.ceil(bytes.length / chunks);
  const sum = Math.ceil(bytes.length / size);
  return Array.from({ length: sum }, (_, seq) => ({
    service,
    method: DATA,
    headers: {
      type: 'event',
      message_id: id,
      sum: String(sum),
      seq: String(seq),
      trace_id: `trace-${id}`,
    },
    payload: bytes.subarray(seq * size, (seq + 1) * size),
  }));
}
