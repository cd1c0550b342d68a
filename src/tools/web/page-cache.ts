// The pages read last, for a short time: a long one is read on from where it was cut, not anew.

export type PageCache<Page> = {
  /** `now` in epoch milliseconds. */
  get(key: string, now: number): Page | undefined;
  set(key: string, page: Page, now: number): void;
};

const MAX_PAGES = 4;
const KEPT_MS = 5 * 60_000;

export function createPageCache<Page>(): PageCache<Page> {
  const pages = new Map<string, { readonly page: Page; readonly until: number }>();
  return {
    get(key, now) {
      const found = pages.get(key);
      return found !== undefined && found.until > now ? found.page : undefined;
    },
    set(key, page, now) {
      pages.delete(key);
      pages.set(key, { page, until: now + KEPT_MS });
      for (const oldest of pages.keys()) {
        if (pages.size <= MAX_PAGES) return;
        pages.delete(oldest);
      }
    },
  };
}
