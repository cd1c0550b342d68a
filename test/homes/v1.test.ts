// Today's program on a home of an earlier commit.

import { finishesOpenThings } from './open-things.ts';

finishesOpenThings();
