import { describe, expect, it } from 'vitest';
import { draftText, nextDraftStep } from '../../src/kernel/turns/rules/live-reply.ts';

const fresh = { startedAt: 0, lastEditAt: undefined, shown: '', isPlaced: false };
const text = 'a growing answer';

describe('a draft', () => {
  it('waits, so that a short answer arrives whole', () => {
    expect(nextDraftStep(fresh, text, 1000, 200)).toEqual({ kind: 'wait', ms: 800 });
    expect(nextDraftStep(fresh, text, 1000, 1000)).toEqual({ kind: 'place' });
  });

  it('does not appear for a few letters', () => {
    expect(nextDraftStep(fresh, 'Yes', 1000, 5000)).toEqual({ kind: 'idle' });
  });

  it('is edited no faster than the platform allows, and only when it changed', () => {
    const placed = { ...fresh, isPlaced: true, lastEditAt: 1000, shown: text };
    expect(nextDraftStep(placed, text, 1000, 9000)).toEqual({ kind: 'idle' });
    expect(nextDraftStep(placed, `${text}.`, 1000, 1400)).toEqual({ kind: 'wait', ms: 600 });
    expect(nextDraftStep(placed, `${text}.`, 1000, 2000)).toEqual({ kind: 'edit' });
  });

  it('says below the text what the agent is doing', () => {
    expect(draftText('So far', 'read_file notes.md')).toBe('So far\n\n_read_file notes.md_');
    expect(draftText('So far', undefined)).toBe('So far');
  });
});
