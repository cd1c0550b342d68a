import { describe, expect, it } from 'vitest';
import { parseCommand } from '../../src/kernel/access/admission.ts';

describe('commands', () => {
  it.each([
    ['/stop', { name: 'stop', argument: '' }],
    ['  /STOP  ', { name: 'stop', argument: '' }],
    ['/model gpt-5', { name: 'model', argument: 'gpt-5' }],
    ['/model@my_bot   gpt-5 ', { name: 'model', argument: 'gpt-5' }],
    ['/start\nABC', { name: 'start', argument: 'ABC' }],
    ['stop', undefined],
    ['/', undefined],
    ['/usr/bin is a folder', undefined],
    ['// comment', undefined],
    ['see /stop', undefined],
  ])('reads %j', (text, expected) => {
    expect(parseCommand(text)).toEqual(expected);
  });
});
