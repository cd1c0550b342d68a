// What was added from elsewhere, as it was looked at then: source and SHA-256 of every file. Kept
// outside of the workspace, where the agent cannot write.

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { NanobotError } from '../../kernel/message/errors.ts';
import { fileStamp, writeAtomic } from '../../lib/files/files.ts';
import { isSkillName } from './rules/skill.ts';

const pin = z.strictObject({
  source: z.string(),
  addedAt: z.iso.datetime(),
  /** By path below the skill's folder, in hexadecimal. */
  files: z.record(z.string(), z.string()),
});
export type SkillPin = Readonly<z.infer<typeof pin>>;

const pinFile = z.strictObject({
  version: z.literal(1),
  skills: z.record(z.string().refine(isSkillName), pin),
});

type SkillPins = ReadonlyMap<string, SkillPin>;

export type PinBook = ReturnType<typeof createPinBook>;

export const sha256 = (bytes: string | Uint8Array) =>
  createHash('sha256').update(bytes).digest('hex');

export function createPinBook(path: string) {
  let cached: { readonly stamp: string; readonly pins: SkillPins } | undefined;

  /** Read again when the file changed. @throws NanobotError where it is damaged */
  async function all(): Promise<SkillPins> {
    const stamp = fileStamp(path);
    if (stamp === undefined) return new Map();
    if (cached?.stamp !== stamp) cached = { stamp, pins: parse(await readFile(path, 'utf8')) };
    return cached.pins;
  }

  function parse(text: string): SkillPins {
    try {
      return new Map(Object.entries(pinFile.parse(JSON.parse(text)).skills));
    } catch (cause) {
      const message = `${path} is damaged: restore it, or delete it and add the skills again`;
      throw new NanobotError('skill_pins_damaged', message, { cause });
    }
  }

  return {
    all,
    /** `undefined` takes it out. */
    async set(name: string, value: SkillPin | undefined): Promise<void> {
      const pins = new Map(await all());
      if (value === undefined) pins.delete(name);
      else pins.set(name, value);
      const skills = Object.fromEntries([...pins].sort(([a], [b]) => (a < b ? -1 : 1)));
      await writeAtomic(path, `${JSON.stringify({ version: 1, skills }, undefined, 2)}\n`);
    },
  };
}
