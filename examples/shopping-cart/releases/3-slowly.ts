import release from './3.ts';
import { slowly } from './slowly.ts';

export default slowly(release);
