// What a person said, without the lines that tell the model when: for tests that are about the words.

const TIME_LINE = /^\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d \d\d:\d\d\](?:\n|$)/gm;

export const withoutTimes = (text: string) => text.replace(TIME_LINE, '');
