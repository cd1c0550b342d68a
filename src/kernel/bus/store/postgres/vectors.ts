// The vectors of parts in PostgreSQL. Foreign keys remove a vector with its text; a new text waits
// for its vectors as soon as a model is chosen.

import { PREFIX_END } from '../key-value.ts';
import type { PartVector, VectorRows } from '../text-index.ts';
import type { Result } from './connection.ts';
import { MODEL_LOCK, SCHEMA } from './schema.ts';
import { foundPart, type IndexTables, partsFrom } from './text-tables.ts';

/** Read or removed in one step. */
const STEP_ROWS = 500;

const CLEAR_SOME = `
  WITH gone AS (
    DELETE FROM ${SCHEMA}.text_vector WHERE id IN (
      SELECT id FROM ${SCHEMA}.text_vector
      WHERE scope >= ? AND scope < ? LIMIT ${STEP_ROWS}
    ) RETURNING part
  ), wanted AS (
    INSERT INTO ${SCHEMA}.text_waiting SELECT DISTINCT part FROM gone ON CONFLICT DO NOTHING
  )
  SELECT count(*) AS count FROM gone`;
const COUNTS = `SELECT (SELECT count(*) FROM ${SCHEMA}.text_vector) AS vectors,
  (SELECT count(*) FROM ${SCHEMA}.text_waiting) AS waiting`;
const WAITING = `
  SELECT part.id, part.text, source.scope, source.label FROM ${SCHEMA}.text_waiting waiting
  JOIN ${SCHEMA}.text_part part ON part.id = waiting.part
  JOIN ${SCHEMA}.text_source source ON source.name = part.source
  WHERE waiting.part < ? ORDER BY waiting.part DESC LIMIT ?`;
const PUT = `
  WITH same AS (
    SELECT id FROM ${SCHEMA}.text_part WHERE id = ? AND text = ? FOR KEY SHARE
  ), gone AS (
    DELETE FROM ${SCHEMA}.text_vector WHERE part IN (SELECT id FROM same)
  ), done AS (
    DELETE FROM ${SCHEMA}.text_waiting WHERE part IN (SELECT id FROM same)
  )
  INSERT INTO ${SCHEMA}.text_vector (part, place, scope, scale, numbers)
  SELECT same.id, piece.place, ?, piece.scale, decode(piece.numbers, 'hex')
  FROM same, json_to_recordset(?::json) AS piece (place bigint, scale float8, numbers text)`;
const IN_SCOPE = `
  SELECT id, part, place, scale, encode(numbers, 'hex') AS numbers FROM ${SCHEMA}.text_vector
  WHERE scope = ? AND id > ? ORDER BY id LIMIT ${STEP_ROWS}`;

export function openVectorRows({ send, change }: IndexTables): VectorRows {
  const first = async (sql: string) => (await send(sql)).rows[0];
  return {
    async model() {
      const row = await first(`SELECT id FROM ${SCHEMA}.text_model`);
      return row && String(row['id']);
    },
    async setModel(id) {
      await change(async (sendIn) => {
        await sendIn(`SELECT pg_advisory_xact_lock(${MODEL_LOCK})`);
        await sendIn(`DELETE FROM ${SCHEMA}.text_model`);
        if (id === undefined) return;
        await sendIn(`INSERT INTO ${SCHEMA}.text_waiting SELECT id FROM ${SCHEMA}.text_part
          ON CONFLICT DO NOTHING`);
        await sendIn(`INSERT INTO ${SCHEMA}.text_model (id) VALUES (?)`, [id]);
      });
    },
    clearSome: async (scopePrefix) =>
      Number((await send(CLEAR_SOME, [scopePrefix, scopePrefix + PREFIX_END])).rows[0]?.['count']),
    async counts() {
      const row = await first(COUNTS);
      return { vectors: Number(row?.['vectors']), waiting: Number(row?.['waiting']) };
    },
    async dimensions() {
      const row = await first(
        `SELECT octet_length(numbers) AS bytes FROM ${SCHEMA}.text_vector LIMIT 1`,
      );
      return row && Number(row['bytes']);
    },
    waiting: async (below, limit) =>
      (await send(WAITING, [below, limit])).rows.map(({ id, text, scope, label }) => ({
        ...{ id: Number(id), text: String(text), scope: String(scope), label: String(label) },
      })),
    async put({ id, text, scope }, pieces) {
      const rows = pieces.map(({ offset, scale, numbers }) => ({
        ...{ place: offset, scale },
        numbers: Buffer.from(numbers.buffer, numbers.byteOffset, numbers.length).toString('hex'),
      }));
      await send(PUT, [id, text, scope, JSON.stringify(rows)]);
    },
    async *inScopes(scopes) {
      for (const scope of scopes) {
        for (let after = 0, found = STEP_ROWS; found === STEP_ROWS; ) {
          const { rows } = await send(IN_SCOPE, [scope, after]);
          yield rows.map(vectorIn);
          after = Number(rows.at(-1)?.['id'] ?? after);
          found = rows.length;
        }
      }
    },
    async parts(ids) {
      const sql = `${partsFrom()} WHERE part.id IN (SELECT json_array_elements_text(?::json)::bigint)`;
      return (await send(sql, [JSON.stringify(ids)])).rows.map(foundPart);
    },
  };
}

function vectorIn({ part, place, scale, numbers }: Result['rows'][number]): PartVector {
  const bytes = Buffer.from(String(numbers), 'hex');
  return {
    ...{ part: Number(part), offset: Number(place), scale: Number(scale) },
    numbers: new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length),
  };
}
