import { expect, it } from 'vitest';
import { basedAt } from '../../src/providers/provider-call.ts';

it('a server is named without what lets somebody in', () => {
  const base = 'https://models.test:8080/v1';
  expect(basedAt('https://me:secret@models.test:8080/v1/?key=secret#secret')).toEqual({ base });
  expect(basedAt('models of mine')).toEqual({});
});
