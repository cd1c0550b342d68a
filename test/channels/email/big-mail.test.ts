// A mail as large as one may be passes through without being in memory (case E20).

import { expect, it } from 'vitest';
import { bigMail, readBigMail } from '../../support/big-mail.ts';

const FILE_BYTES = 18_000_000;
/** The bench holds it to 80 on a quiet machine; read whole it took 200. */
const MAX_GROWN_MB = 100;

it('reads a mail of 24 MB without holding it, its signature and its file included', async () => {
  const mail = await bigMail(FILE_BYTES);
  const { text, proof, media, grownMb } = await readBigMail(mail);
  expect(text).toContain('Here is the film.');
  expect(proof).toBe('verified');
  expect(media).toBe(mail.sha256);
  expect(grownMb).toBeLessThan(MAX_GROWN_MB);
});
