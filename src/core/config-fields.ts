// The kinds of values the configuration is made of.

import { z } from 'zod';

export const seconds = (minimum: number, maximum: number) => z.number().min(minimum).max(maximum);
export const count = (minimum: number, maximum: number) => z.int().min(minimum).max(maximum);
export const port = z.int().min(1).max(65_535);
export const secret = () => z.string().meta({ secret: true });
