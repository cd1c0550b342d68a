// Maps with a bounded number of tasks at work; results keep the order of the items.

export async function mapLimited<Item, Result>(
  items: readonly Item[],
  limit: number,
  task: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results = new Map<number, Result>();
  const queue = items.entries();
  const worker = async () => {
    for (const [index, item] of queue) results.set(index, await task(item));
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return items.map((_, index) => results.get(index) as Result);
}
