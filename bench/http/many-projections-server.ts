/** A process of an application with many read models, which maintains them and serves clients. Listens when it answers from all of them. */
import { setTimeout } from 'node:timers/promises';
import { pino } from 'pino';
import { defineConfig } from '../../src/index.ts';
import { createReloadableRefold } from '../../src/refold.ts';
import { cartProjections } from '../many/cart-projections.ts';
import { answerParent } from './answer-parent.ts';

const [, , url = '', count = ''] = process.argv;
const projections = cartProjections(Number(count));
const refold = await createReloadableRefold(
  defineConfig({ projections, database: { url }, gateway: { port: 0 }, development: false }),
  { migrate: false, logger: pino({ level: 'error' }, pino.destination(2)) },
);
const isActive = ({ name, version }: (typeof projections)[number]) =>
  refold.versions.stateOf(name, version) === 'active';
while (!projections.every(isActive)) await setTimeout(5);
answerParent(refold.url ?? '', () => refold.stop());
