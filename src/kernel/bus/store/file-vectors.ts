// The vectors of parts in index.db. Triggers in the file remove a vector in the transaction that
// removes its text, also while the feature is off, and note new texts for it.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { IndexFile, IndexRow } from './file-index.ts';
import type { FoundPart, PartVector, VectorRows, WaitingPart } from './text-index.ts';

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS vector (
    id INTEGER PRIMARY KEY, part INTEGER NOT NULL, offset INTEGER NOT NULL, scope TEXT NOT NULL,
    scale REAL NOT NULL, v BLOB NOT NULL
  );
  CREATE INDEX IF NOT EXISTS vector_part ON vector (part);
  CREATE TABLE IF NOT EXISTS vector_pending (part INTEGER PRIMARY KEY);
  CREATE TABLE IF NOT EXISTS vector_model (id TEXT NOT NULL);
  CREATE TRIGGER IF NOT EXISTS vector_wanted AFTER INSERT ON part BEGIN
    INSERT OR IGNORE INTO vector_pending VALUES (new.id);
  END;
  CREATE TRIGGER IF NOT EXISTS vector_removed AFTER DELETE ON part BEGIN
    DELETE FROM vector WHERE part = old.id;
    DELETE FROM vector_pending WHERE part = old.id;
  END;
`;

/** Read or removed in one step, some milliseconds of work. */
const STEP_ROWS = 500;
const IN_SCOPES = `
  SELECT part, offset, scale, v FROM vector
  WHERE id > ? AND id <= ? AND scope IN (SELECT value FROM json_each(?))`;
const WAITING = `
  SELECT part.id, part.text, source.scope, source.label FROM vector_pending
  JOIN part ON part.id = vector_pending.part JOIN source ON source.name = part.source
  WHERE vector_pending.part < ? ORDER BY vector_pending.part DESC LIMIT ?`;
const CLEAR_SOME = `
  DELETE FROM vector WHERE id IN (
    SELECT id FROM vector WHERE substr(scope, 1, length(?1)) = ?1 LIMIT ${STEP_ROWS}
  ) RETURNING part`;
const PARTS = `
  SELECT part.id, part.source, part.place, part.role, part.is_foreign, part.at, part.text,
    source.label
  FROM part JOIN source ON source.name = part.source
  WHERE part.id IN (SELECT value FROM json_each(?))`;

export function openVectorRows(file: IndexFile): VectorRows {
  file.extend(SCHEMA);
  const number = (sql: string) => Number(Object.values(file.query(sql, [])[0] ?? {})[0] ?? 0);
  return {
    async model() {
      const [row] = file.query('SELECT id FROM vector_model', []);
      return row && String(row['id']);
    },
    async setModel(id) {
      file.change(() => {
        file.query('DELETE FROM vector_model', []);
        if (id === undefined) return;
        file.query('INSERT OR IGNORE INTO vector_pending SELECT id FROM part', []);
        file.query('INSERT INTO vector_model VALUES (?)', [id]);
      });
    },
    async clearSome(scopePrefix) {
      const removed = file.change(() => {
        const parts = file.query(CLEAR_SOME, [scopePrefix]);
        for (const { part } of parts) {
          file.query('INSERT OR IGNORE INTO vector_pending VALUES (?)', [Number(part)]);
        }
        return parts.length;
      });
      await nextTurn();
      return removed;
    },
    counts: async () => ({
      vectors: number('SELECT count(*) FROM vector'),
      waiting: number('SELECT count(*) FROM vector_pending'),
    }),
    dimensions: async () => number('SELECT length(v) FROM vector LIMIT 1') || undefined,
    waiting: async (below, limit) =>
      file.query(WAITING, [below, limit]) as readonly unknown[] as readonly WaitingPart[],
    async put({ id, text, scope }, pieces) {
      file.change(() => {
        if (file.query('SELECT text FROM part WHERE id = ?', [id])[0]?.['text'] !== text) return;
        file.query('DELETE FROM vector WHERE part = ?', [id]);
        for (const { offset, scale, numbers } of pieces) {
          const bytes = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.length);
          file.query('INSERT INTO vector (part, offset, scope, scale, v) VALUES (?, ?, ?, ?, ?)', [
            ...[id, offset, scope, scale, bytes],
          ]);
        }
        file.query('DELETE FROM vector_pending WHERE part = ?', [id]);
      });
    },
    async *inScopes(scopes) {
      const last = number('SELECT max(id) FROM vector');
      const wanted = JSON.stringify(scopes);
      for (let after = 0; after < last; after += STEP_ROWS) {
        yield file.query(IN_SCOPES, [after, after + STEP_ROWS, wanted]).flatMap(vectorIn);
        await nextTurn();
      }
    },
    parts: async (ids) => file.query(PARTS, [JSON.stringify(ids)]).map(foundPart),
  };
}

function foundPart({ is_foreign, ...row }: IndexRow): FoundPart {
  return { ...row, isForeign: is_foreign !== 0 } as unknown as FoundPart;
}

function vectorIn({ part, offset, scale, v }: IndexRow): readonly PartVector[] {
  if (!(v instanceof Uint8Array)) return [];
  const numbers = new Int8Array(v.buffer, v.byteOffset, v.length);
  return [{ part: Number(part), offset: Number(offset), scale: Number(scale), numbers }];
}
