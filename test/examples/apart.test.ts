import { startOwnServer } from '../support/own-server.ts';
import { examplesApart } from './apart.ts';

examplesApart(startOwnServer);
